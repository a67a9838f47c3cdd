"""Checks before anything starts: of the directory, and of the machine by a child process that imports torch."""

from __future__ import annotations

import math
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import EsperError, SettingName, UsageError, WorkerHung
from esper_ab.contracts.machine import DOING, Device, Machine, Questions
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.plain_values import expected_instead
from esper_ab.contracts.process_endings import describe_end
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.trainer import is_guarded
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.worker_order import Lane
from esper_ab.control import descriptors
from esper_ab.control.crowding import crowding
from esper_ab.launchers import Errand, Launcher, begin_here

LIMIT_S = 120.0  # on an idle machine; importing torch from a cold network disk takes tens of seconds
_MODULE = "workers.commands.describe"
_SAY_S = 10.0  # after this time, the user is told what the preflight is doing
_SAY_AGAIN_S = 30.0
_LOOK_S = 0.5
_LOG_BYTES_PER_ENV_EPISODE = 4096  # journal line and log, measured generously
_SPARE_BYTES = 64 << 20  # policies, report, and room for others
_decode_machine = msgspec.json.Decoder(Machine).decode


def examine(
    questions: Questions,
    do_meanwhile: Callable[[], None] = lambda: None,
    limit_s: float = LIMIT_S,
    *,
    begin_on: Callable[[str, bytes], Errand] | None = None,
    node: str = "",
) -> Machine:
    """Run the preflight and return its answers.

    Raises UsageError if the preflight was ended by the user's code or in a limited address space, and EsperError if it
    was ended by anything else.

    `do_meanwhile` is called while the child imports torch, which takes a second or more. `limit_s`: time limit on an
    idle machine, to be multiplied by the crowding; WorkerHung is raised when the time is up. The rehearsal of a user's
    own trainer has no limit. `begin_on`: starts the preflight on `node` instead of on this machine.
    """
    question_line = msgspec.json.encode(questions) + b"\n"
    subject = f"the preflight on node {node} ({_MODULE})" if node else f"the preflight ({_MODULE})"
    begin_s = time.monotonic()
    with begin_on(_MODULE, question_line) if begin_on else begin_here(child_command(_MODULE), question_line) as child:
        do_meanwhile()
        answer, complaint = _awaited(child, begin_s, limit_s if questions.trainer is None else math.inf)
    try:
        return _decode_machine(answer)  # a valid answer counts, whatever users' code printed or did at exit
    except UNREADABLE as error:
        reason = error
    lines = complaint.decode(errors="replace").splitlines()
    printed_lines = [line for line in lines if line.strip() and not line.startswith(DOING)]
    end_words = visible_line(describe_end(child.returncode or 0, printed_lines))
    activity = _last_doing(lines)
    own_references = [*questions.user_rewards, questions.trainer.reference if questions.trainer else questions.task]
    if any(reference in activity for reference in own_references if ":" in reference or questions.trainer):
        raise UsageError(f"your code ended the preflight, which was {activity}: the process {end_words}")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if not node and limit != resource.RLIM_INFINITY:
        limit_words = f"with an address space of {limit >> 20} MiB"
        raise UsageError(f"{subject} gave no answer: {limit_words} it {end_words}; raise `ulimit -v`")
    raise EsperError(f"{subject} gave no answer ({reason}): it {end_words}")


def examine_here(questions: Questions, launcher: Launcher, do_meanwhile: Callable[[], None] = lambda: None) -> Machine:
    """Run the preflight on this machine, in the way in which `launcher` starts workers. Raises as `examine` does.

    Workers that only guard a command need no torch, so for them only the preflight imports it, in its own process.
    """
    guards = questions.trainer is not None and is_guarded(questions.trainer.reference)
    if guards or not launcher.imports_torch_once:
        return examine(questions, do_meanwhile)
    machine = examine(questions, do_meanwhile, begin_on=partial(launcher.begin, ""))
    return msgspec.structs.replace(machine, spawned_because=launcher.spawned_because)


def _awaited(child: Errand, begin_s: float, limit_s: float) -> tuple[bytes, bytes]:
    """Return the preflight's stdout and stderr; after the limit, raise WorkerHung with the last step."""
    next_say_s = _SAY_S
    longest_s = limit_s
    while True:
        try:
            return child.communicate(timeout=_LOOK_S)
        except subprocess.TimeoutExpired as error:
            lines = (error.stderr or b"").decode(errors="replace").splitlines()
        waited_s = time.monotonic() - begin_s
        longest_s = max(longest_s, limit_s * crowding())
        if waited_s > longest_s:
            raise WorkerHung(
                f"the preflight gave no answer within {longest_s:.0f} s; it was still {_last_doing(lines)}"
            )
        if waited_s > next_say_s:
            limit = "" if longest_s == math.inf else f", of at most {longest_s:.0f} s"
            _warn(f"before the start: {_last_doing(lines)}; {waited_s:.0f} s so far{limit}")
            next_say_s += _SAY_AGAIN_S


def _last_doing(lines: Sequence[str]) -> str:
    """Return the last step that the preflight announced on its standard error."""
    last_activity = next((line for line in reversed(lines) if line.startswith(DOING)), f"{DOING}importing torch")
    return visible_line(last_activity.removeprefix(DOING))


def _warn(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(typeable(f"{text}\n"))


def expected_bytes(env_episodes: int) -> int:
    """Return how many bytes an experiment directory may need."""
    return _SPARE_BYTES + env_episodes * _LOG_BYTES_PER_ENV_EPISODE


def check_experiment_dir(experiment_dir: Path, needed_bytes: int) -> None:
    """Raise UsageError unless `experiment_dir` can be created, or exists, and has room. Creates nothing."""
    if expected := expected_instead(str(experiment_dir)):
        subject = f"cannot create {str(experiment_dir)!r}"
        raise UsageError(f"{subject}: expected {expected}; choose another with ", SettingName("output_dir"))
    parent = next(folder for folder in experiment_dir.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"cannot create {experiment_dir}: {parent} is not a writable folder; choose another")
    free_bytes = shutil.disk_usage(parent).free
    if free_bytes < needed_bytes:
        room = f"{free_bytes >> 20} MiB free, but the run may need {needed_bytes >> 20} MiB"
        raise UsageError(f"{parent} has {room}; free some space or choose another folder")


def check_launcher(launcher: Launcher, lanes: Sequence[Lane], devices: Sequence[Device] = ()) -> None:
    """Raise UsageError unless `launcher` can serve the lanes and this process may open enough descriptors.

    `devices`: the devices that the lanes now refer to; by default, the devices with which the plan was made.
    """
    if not hasattr(os, "pidfd_open"):
        raise UsageError(
            f"training needs Linux (epoll, eventfd and pidfd_open), but this is {sys.platform}; comparing, judging, "
            "planning and reporting work here"
        )
    launcher.use(devices)
    launcher.check_lanes(lanes)
    descriptors.check(len(lanes), launcher.descriptors, launcher.own_descriptors)
