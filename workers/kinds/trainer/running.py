"""Runs a command as a process: environment, output, liveness, end."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from esper_ab.contracts import guard
from esper_ab.contracts.errors import UserCodeFailed
from esper_ab.contracts.failure_cause import Cause, cause_of_exit, port_hint
from esper_ab.contracts.files_below import open_below
from esper_ab.contracts.own_packages import isolated_command
from esper_ab.contracts.process_endings import how_ended
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.contracts.trainer import OUT, OutcomeSource
from esper_ab.contracts.worker_order import UsersShell
from workers.kinds.trainer.code_tree import TreeFiles
from workers.kinds.trainer.idling import Idle, Watch, idle_words
from workers.kinds.trainer.outcome_sources.wandb_log import WANDB_FILE

_LOOK_S = 1.0  # between two liveness checks
_STAND_IN = Path(__file__).parent / "standin"
_LINES = 3  # of a command's output, in a message
_LINE_CHARS = 160  # of each
_LINES_READ = 50  # of a command's output, in search of its last exception
# Said by a program that looks for a file where it runs; "No rule to make target" by make, which finds no Makefile.
_MISSES_A_FILE = re.compile(r"FileNotFoundError|no such file|no rule to make target|no makefile found", re.IGNORECASE)


class ScriptFailed(UserCodeFailed):
    """A command failed; the message is one line with the end of the command's output."""

    again = True  # the fault may be gone next time
    in_log = True

    def __init__(self, message: str, cause: Cause | None = None) -> None:
        """`cause`: None if a retry may succeed."""
        super().__init__(message)
        self.cause = cause


def environment(
    shell: UsersShell,
    source: OutcomeSource,
    out_folder: Path,
    pins: Mapping[str, str],
    search_path: str = "",
    files: TreeFiles | None = None,
) -> dict[str, str]:
    """Return the script's environment: the user's, `pins` and, for an outcome from wandb, the stand-in.

    `pins`: the variables that `workers.devices.pinned` sets for devices and threads. `search_path`: a folder where
    Python finds modules, too, or "". `files`: the state of the code in which the script works.
    """
    shell_variables = shell.variables()
    if files is not None:
        shell_variables = files.variables(shell_variables)
    own_variables = {"PYTHONUNBUFFERED": "1"}  # otherwise a killed script would lose its last lines
    paths = [shell_variables.get("PYTHONPATH", ""), search_path]
    if source.tool == "wandb":
        paths.insert(0, str(_STAND_IN))
        own_variables |= {"ESPER_AB_WANDB_KEY": source.key, "ESPER_AB_WANDB_FILE": str(out_folder / WANDB_FILE)}
    if any(paths):
        own_variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return {**shell_variables, **pins, **own_variables}


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended that did not fail."""

    by_itself: bool  # False: it idled with a result, and was therefore ended
    peak_bytes: int  # most memory of its processes: a sum every second, and exactly of the largest one


def run_script(
    words: list[str],
    directory: str,
    variables: Mapping[str, str],
    log: tuple[Path, str],
    watch: Watch,
    shell: UsersShell,
) -> ProgramEnd:
    """Run a program to its end; ScriptFailed if it fails. Its command line and output go to `log` (root, name).

    Its environment is `variables`; everything else that it inherits is as in `shell`. A program that `watch` finds idle
    is ended, and ScriptFailed is raised if it has no result.

    `watch.on_sign` is called while the program works, that is, if CPU time was used or output was written since the
    last check. An exception in it ends the program, and so does the end of this process.
    """
    root, name = log
    output = open_below(root, name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    peak, report = os.pipe()
    with os.fdopen(peak, "rb") as peak_file:
        try:
            os.write(output, os.fsencode(f"$ {shlex.join(words)}\n"))  # with its seed, to be repeated by hand
            size_before = (root / name).stat().st_size
            guard_process = subprocess.Popen(
                isolated_command(guard.__file__, shell.for_guard(), str(report), *words),
                cwd=directory,
                env=dict(variables),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(report,),
                start_new_session=True,
            )
        finally:
            os.close(output)
            os.close(report)
        idle_kind, seen_bytes, status = _attended(guard_process, root / name, watch)
        largest_bytes = int(peak_file.read() or 0)
    if idle_kind not in ("", "with a result"):
        raise ScriptFailed(f"{shown(words)} {idle_words(idle_kind, watch.limits)}, so it was ended")
    if status and not idle_kind:
        raise _failure(
            words, status, _end_of(root / name, size_before), own_folder=Path(directory).is_relative_to(root.resolve())
        )
    return ProgramEnd(by_itself=not idle_kind, peak_bytes=max(seen_bytes, largest_bytes))


def _attended(guarded: subprocess.Popen[bytes], log: Path, watch: Watch) -> tuple[Idle, int, int]:
    """Wait until a guard's program ends, or end it; return how it idled, its memory in bytes and the exit status."""
    assert guarded.stdin is not None, "it is a pipe"
    try:
        idle, seen_bytes = _watched(guarded, log, watch)
    finally:
        guarded.stdin.close()  # tells the guard to end the program, if still running
        status = guarded.wait()
    return idle, seen_bytes, status


def shown(words: Sequence[str]) -> str:
    """Return the words of a command for a message, cut if they are many."""
    return shlex.join(words)[:_LINE_CHARS]


def _failure(words: Sequence[str], status: int, lines: list[str], *, own_folder: bool) -> ScriptFailed:
    """Return the error for a command that failed, from the last lines of its output."""
    end = " | ".join(lines[-_LINES:]) or "it wrote nothing"
    if "IsADirectoryError" in end:
        end += f"; {{{OUT}}} is a folder: give the script a file in it, as in {{{OUT}}}/result.json"
    elif own_folder and status != guard.NO_PROGRAM and _MISSES_A_FILE.search(end):
        end += (
            f"; without {{{OUT}}} in it, a command runs in an empty folder, and values of settings are passed as they "
            f"are: put {{{OUT}}} in to run where you are, or give the whole path"
        )
    end += port_hint(lines)
    return ScriptFailed(f"{shown(words)} {how_ended(status)}: {end}", cause_of_exit(status, lines))


def _watched(guard_process: subprocess.Popen[bytes], log: Path, watch: Watch) -> tuple[Idle, int]:
    """Wait until a program ends or, as `watch` finds, idles; call `watch.on_sign` while it works.

    Returns how it idles, and the most memory in bytes that its processes had at a time.
    """
    last_work: object = None
    idle_kind: Idle = ""
    peak_bytes = 0
    while not idle_kind:
        try:
            guard_process.wait(_LOOK_S)
            break
        except subprocess.TimeoutExpired:
            usage_by_pid = _used(guard_process.pid)
            peak_bytes = max(peak_bytes, sum(usage.bytes for usage in usage_by_pid.values()))
            work_now = ({pid: usage.times for pid, usage in usage_by_pid.items()}, log.stat().st_size)
            if work_now != last_work:
                watch.on_sign()
            last_work = work_now
            idle_kind = watch.look(guard_process.pid)
    return idle_kind, peak_bytes


@dataclass(frozen=True)
class _Used:
    """What a process has used."""

    times: tuple[float, ...]  # of the CPU
    bytes: int  # of memory, now


def _used(guarding: int) -> dict[int, _Used]:
    """Return what a guard and its descendants have used, by pid."""
    usage_by_pid = {}
    with suppress(psutil.NoSuchProcess):
        for process in (psutil.Process(guarding), *psutil.Process(guarding).children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                usage_by_pid[process.pid] = _Used(tuple(process.cpu_times()), process.memory_info().rss)
    return usage_by_pid


def _end_of(log: Path, begin: int) -> list[str]:
    """Return the last lines written after byte `begin`, without blank ones."""
    with open_to_read(log) as file:
        file.seek(max(begin, log.stat().st_size - (64 << 10)))
        text = file.read().decode(errors="replace")
    return [line.strip()[:_LINE_CHARS] for line in text.splitlines() if line.strip()][-_LINES_READ:]
