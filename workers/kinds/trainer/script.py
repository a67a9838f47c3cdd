"""Runs a command as a process: arguments, environment, output, liveness, outcome.

The outcome is a key of a JSON file, the last cell of a CSV column that is not empty, or a key given to wandb.log. If
the outcome cannot be read, a one-line ValueError names the file and its contents.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from esper_ab.contracts import guard
from esper_ab.contracts.errors import UserCodeFailed
from esper_ab.contracts.failure_cause import cause_of_exit
from esper_ab.contracts.files_below import folder_below, open_below
from esper_ab.contracts.own_packages import isolated_command
from esper_ab.contracts.plain_number import number_or_boolean
from esper_ab.contracts.plain_values import as_float
from esper_ab.contracts.process_endings import how_ended
from esper_ab.contracts.regular_file import open_to_read, read_regular
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.trainer import OUT, SEED, OutcomeSource, TrainerValue, fill, holds_outcome
from esper_ab.contracts.worker_order import UsersShell
from workers.kinds.trainer.idling import Idle, Watch, idle_words

WANDB_FILE = "wandb-values.txt"  # below {out}; written by standin/wandb.py
_SHOWN = 12  # maximum number of names in a message
_MOST_SEARCHED = 100  # files below {out} that are searched for the outcome's key


def read_outcome(source: OutcomeSource, out: Path) -> float:
    """Return the number to which `source` refers below the folder `out`; it need not be finite. True is 1, False 0."""
    if source.wandb:
        return _read_wandb(source.key, out / WANDB_FILE)
    file = source.path or _find_file(source.key, out)
    key = source.key
    text = _text(file, out)
    if file.endswith(".csv"):
        cell = _read_csv(file, key, text)
        try:
            return number_or_boolean(cell)
        except ValueError:
            raise ValueError(f"{file}: {key} is {cell!r}, not a number") from None
    value = _read_json(file, key, text)
    if isinstance(value, str):
        raise ValueError(f"{file}: {key} is the text {value!r}, not a number; write it without quotes")
    if not isinstance(value, bool | int | float):
        raise ValueError(f"{file}: {key} is {type(value).__name__}, not a number")
    return as_float(value)


def _text(file: str, out: Path) -> str:
    try:
        return read_regular(out / file).decode("utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"the script left no {file} in {{out}}; it left {_list(_files(out))}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} in {{out}} cannot be read: {getattr(error, 'strerror', error)}") from None


def has_outcome(source: OutcomeSource, out: Path) -> bool:
    """Whether `read_outcome` would return a number."""
    try:
        read_outcome(source, out)
    except ValueError:
        return False
    return True


def _files(out: Path) -> list[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())


def _find_file(key: str, out: Path) -> str:
    """Return the file that holds the outcome: the only .json or .csv file, or the only one of several that has `key`.

    Raises ValueError if there is none, or if several have the key.
    """
    files = _files(out)
    tables = [name for name in files if holds_outcome(name)]
    if not tables:
        raise ValueError(f"the script left no .json or .csv file in {{out}}; it left {_list(files)}")
    if len(tables) == 1:
        return tables[0]
    having = list[str]()
    searched = ""
    if len(tables) <= _MOST_SEARCHED:
        having = [name for name in tables if _has(key, name, out)]
        searched = f", of which none has {key}"
    if len(having) == 1:
        return having[0]
    example = min(having or tables, key=lambda name: name.endswith(".csv"))  # a JSON is likelier to hold a final number
    if having:
        raise ValueError(f"{_list(having)} in {{out}} all have {key}; say which one counts, as in {example}:{key}")
    raise ValueError(f"the script left {_list(tables)} in {{out}}{searched}; say which has it, as in {example}:NAME")


def _has(key: str, file: str, out: Path) -> bool:
    """Whether a file has the key or column, whatever its value; a file that cannot be read has not."""
    try:
        text = _text(file, out)
        if file.endswith(".json"):
            _value_of(file, key, json.loads(text))
            return True
        return key in _columns(next(csv.reader(io.StringIO(_strip_comments(key, text), newline="")), []))
    except (ValueError, RecursionError, csv.Error):
        return False


def _read_json(file: str, key: str, text: str) -> Any:
    """Return the value of a key; dots in a key also name nested values. A key that occurs twice is refused."""
    try:
        tree = json.loads(text, object_pairs_hook=_refuse_repeated_keys)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: not JSON: {error}") from None
    return _value_of(file, key, tree)


def _value_of(file: str, key: str, tree: Any) -> Any:
    if isinstance(tree, dict) and key in tree:
        return tree[key]
    for part in key.split("."):
        if not isinstance(tree, dict) or part not in tree:
            raise ValueError(f"{file}: no key {key!r}; available keys: {_list(_keys(tree))}")
        tree = tree[part]
    return tree


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; ValueError if a key occurs twice, because one of its values would be ignored."""
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        entries[key] = value
    return entries


def _keys(tree: Any) -> list[str]:
    """Return the keys of a JSON object; those of an object in it are like "final.accuracy"."""
    if not isinstance(tree, dict):
        return []
    keys = list[str]()
    for key, value in tree.items():
        if isinstance(value, dict):
            keys += [f"{key}.{inner}" for inner in value]
        else:
            keys.append(key)
    return keys


def _read_csv(file: str, key: str, text: str) -> str:
    """Return the last cell of a column that is not empty; a table that `judge` would refuse is refused here, too.

    Stable-Baselines3 and others write evaluations in rows of their own, and leave the cells of other rows empty.
    """
    table = _strip_comments(key, text)
    try:
        rows = [row for row in csv.reader(io.StringIO(table, newline=""), strict=True) if row]
    except csv.Error as error:
        raise ValueError(f"{file}: not CSV: {error}") from None
    columns = _columns(rows[0]) if rows else []
    if key not in columns:
        raise ValueError(f"{file}: no column {key!r}; available columns: {_list(columns)}")
    if columns.count(key) > 1:
        raise ValueError(f"{file}: the column name {key!r} occurs twice")
    if len(rows) == 1:
        raise ValueError(f"{file}: it has a header but no rows")
    for place, row in enumerate(reversed(rows[1:])):
        if len(row) != len(columns):
            which = "the last row" if place == 0 else f"row {place + 1} from the end"
            raise ValueError(f"{file}: {which} has {len(row)} cells, the header {len(columns)}")
        if cell := row[columns.index(key)].strip():
            return cell
    raise ValueError(f"{file}: {key} is empty in every row")


def _strip_comments(key: str, text: str) -> str:
    """Return the text of a CSV file without the lines before its header that start with #, as in Monitor's files.

    A line that has the column `key` is the header, even if it starts with #.
    """
    lines = list(io.StringIO(text, newline=""))
    for place, line in enumerate(lines):
        if not line.startswith("#") or key in _columns(line.rstrip("\r\n").split(",")):
            return "".join(lines[place:])
    return text


def _columns(header: list[str]) -> list[str]:
    return [name.strip() for name in header]


def _read_wandb(key: str, file: Path) -> float:
    try:
        return float(read_regular(file).split()[-1])
    except FileNotFoundError:
        raise ValueError(
            f"the script logged no number {key!r} with wandb.log; does it need a flag for that, like CleanRL's --track?"
        ) from None


def _list(names: Iterable[str]) -> str:
    names = list(names)
    if not names:
        return "nothing"
    first_names = ", ".join(names[:_SHOWN])
    return f"{first_names}, …" if len(names) > _SHOWN else first_names


_LOOK_S = 1.0  # between two liveness checks
_STAND_IN = Path(__file__).parent / "standin"
_SEEDS = 2**31  # a seed that every library accepts
_LINES = 3  # of a command's output, in a message
_LINE_CHARS = 160  # of each
_LINES_READ = 50  # of a command's output, in search of its last exception


class ScriptFailed(UserCodeFailed):
    """A command failed; the message is one line with the end of the command's output."""

    again = True  # the fault may be gone next time
    in_log = True

    def __init__(self, message: str, cause: str = "") -> None:
        """`cause`: see `contracts/failure_cause.py`."""
        super().__init__(message)
        self.cause = cause


def seed_at(path: RngPath) -> int:
    """Return the number at an address as a seed for any library: 0 … 2^31 - 1."""
    return path.key() % _SEEDS


def fresh_folder(root: Path, name: str) -> Path:
    """Make an empty folder `name` below `root`, deleting the files of an earlier attempt of the run."""
    folder = folder_below(root, name)
    shutil.rmtree(folder)
    return folder_below(root, name)


def words_of(command: str, settings: Mapping[str, TrainerValue], seed: int, out: Path) -> list[str]:
    """Return the command's arguments with all placeholders filled in."""
    return fill(command, {**settings, SEED: seed, OUT: str(out)})


def environment(shell: UsersShell, source: OutcomeSource, out: Path, pins: Mapping[str, str]) -> dict[str, str]:
    """Return the script's environment: the user's, `pins` and, for an outcome from wandb, the stand-in.

    `pins`: the variables that `workers.devices.pinned` sets for devices and threads.
    """
    own = shell.variables()
    own_variables = {"PYTHONUNBUFFERED": "1"}  # otherwise a killed script would lose its last lines
    if source.wandb:
        own_variables |= {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(_STAND_IN), own.get("PYTHONPATH", "")))),
            "ESPER_AB_WANDB_KEY": source.key,
            "ESPER_AB_WANDB_FILE": str(out / WANDB_FILE),
        }
    return {**own, **pins, **own_variables}


def run_script(
    words: list[str],
    directory: str,
    variables: Mapping[str, str],
    log: tuple[Path, str],
    watch: Watch,
    shell: UsersShell,
) -> bool:
    """Run a program to its end; ScriptFailed if it fails. Its command line and output go to `log` (root, name).

    Its environment is `variables`; everything else that it inherits is as in `shell`.

    Returns False if `watch` found that the program idled with a result, and it was therefore ended. If it idles without
    a result, it is ended and ScriptFailed is raised.

    `watch.on_sign` is called while the program works, that is, if CPU time was used or output was written since the
    last check. An exception in it ends the program, and so does the end of this process.
    """
    root, name = log
    output = open_below(root, name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(output, os.fsencode(f"$ {shlex.join(words)}\n"))  # with its seed, to be repeated by hand
        before = (root / name).stat().st_size
        guarded = subprocess.Popen(
            isolated_command(guard.__file__, shell.for_guard(), *words),
            cwd=directory,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)
    assert guarded.stdin is not None, "it is a pipe"
    try:
        idle = _watched(guarded, root / name, watch)
    finally:
        guarded.stdin.close()  # tells the guard to end the program, if still running
        status = guarded.wait()
    if idle not in ("", "with a result"):
        raise ScriptFailed(f"{' '.join(words)[:_LINE_CHARS]} {idle_words(idle, watch.limits)}, so it was ended")
    if status and not idle:
        lines = _end_of(root / name, before)
        end = " | ".join(lines[-_LINES:]) or "it wrote nothing"
        if "IsADirectoryError" in end:
            end += f"; {{{OUT}}} is a folder: give the script a file in it, as in {{{OUT}}}/result.json"
        raise ScriptFailed(f"{' '.join(words)[:_LINE_CHARS]} {how_ended(status)}: {end}", cause_of_exit(status, lines))
    return not idle


def _watched(guarded: subprocess.Popen[bytes], log: Path, watch: Watch) -> Idle:
    """Wait until a program ends or, as `watch` finds, idles; call `watch.on_sign` while it works."""
    worked: object = None
    idle: Idle = ""
    while not idle:
        try:
            guarded.wait(_LOOK_S)
            break
        except subprocess.TimeoutExpired:
            now = (_times(guarded.pid), log.stat().st_size)
            if now != worked:
                watch.on_sign()
            worked = now
            idle = watch.look(guarded.pid)
    return idle


def _times(guarding: int) -> dict[int, tuple[float, ...]]:
    """Return the CPU times of a guard and its descendants, by pid."""
    times = {}
    with suppress(psutil.NoSuchProcess):
        for process in (psutil.Process(guarding), *psutil.Process(guarding).children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times[process.pid] = tuple(process.cpu_times())
    return times


def _end_of(log: Path, begin: int) -> list[str]:
    """Return the last lines written after byte `begin`, without blank ones."""
    with open_to_read(log) as file:
        file.seek(max(begin, log.stat().st_size - (64 << 10)))
        text = file.read().decode(errors="replace")
    return [line.strip()[:_LINE_CHARS] for line in text.splitlines() if line.strip()][-_LINES_READ:]
