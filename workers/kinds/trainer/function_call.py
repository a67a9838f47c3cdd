"""Calls a function of the user's in a process of its own, and reads what it returned. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from esper_ab.contracts.code_state import CodeTree
from esper_ab.contracts.failure_cause import cause_of_text
from esper_ab.contracts.files_below import remove_below, write_below
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.trainer import DEFAULT_OUTCOME, OutcomeSource, TrainerValue
from esper_ab.contracts.wording import close_names, did_you_mean, listed
from esper_ab.contracts.worker_order import UsersShell
from workers.kinds.trainer import running
from workers.kinds.trainer.idling import Watch

ORDER = "call.json"
RETURNED = "returned.json"
_PROGRAM = "workers.kinds.trainer.commands.call_function"
Numbers = dict[str, float]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """The order of one call, as the program reads it."""

    reference: str  # path.py:function, or module:function
    directory: str  # where the user was
    tree: CodeTree | None = None  # the state of the code in which the function is called
    root: str = ""  # folder that has the tree
    kept: str = ""  # folder with the copies of `files`; "": the files as they are
    files: tuple[str, ...] = ()  # relative to the folder from which they are imported, the function's own first
    groups: Mapping[str, Mapping[str, TrainerValue]]  # settings of all groups
    group: str  # the group whose settings are used
    more: Mapping[str, TrainerValue] = {}  # over them
    seed: int
    filled: Mapping[str, str]  # values of parameters that every run fills in, if the function has them

    @property
    def name(self) -> str:
        """The function's name."""
        return self.reference.rpartition(":")[2]


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a call. Numbers are text, because JSON has no infinity."""

    points: tuple[dict[str, str], ...] = ()
    settings: dict[str, dict[str, TrainerValue]] = {}  # by group: typed, and with defaults
    root: str = ""  # folder from which the function's file is imported
    files: tuple[str, ...] = ()  # below it, imported by this process, the function's own first
    error: str = ""
    memory_bytes: int = 0  # most that its process had; known after it has ended

    def curve(self, function: str, outcome: str) -> list[Numbers]:
        """Return the numbers of each point by name; ValueError if none of them is the outcome."""
        return [_numbers_of(point, function, outcome) for point in self.points]


_decode = msgspec.json.Decoder(Called).decode


@dataclass(frozen=True, kw_only=True)
class CallPlace:
    """Where a call runs, and what it inherits."""

    root: Path  # of the names below
    folder: str  # of the order and the answer
    log: str
    pins: Mapping[str, str]  # environment variables for devices and threads
    shell: UsersShell

    @property
    def answer(self) -> Path:
        """The file with the answer, if the function has returned or failed."""
        return self.root / self.folder / RETURNED


def called(call: Call, place: CallPlace, watch: Watch) -> Called:
    """Call the function and return the answer.

    Raises ScriptFailed, with one line, if the function fails or returns no number.
    """
    remove_below(place.root, f"{place.folder}/{RETURNED}")
    write_below(place.root, f"{place.folder}/{ORDER}", msgspec.json.encode(call))
    words = child_command(_PROGRAM, str((place.root / place.folder).resolve()), outlives=True)  # its guard ends it
    variables = running.environment(place.shell, OutcomeSource("", "outcome"), place.answer.parent, place.pins)
    try:
        run_end = running.run_script(words, call.directory, variables, (place.root, place.log), watch, place.shell)
    except running.ScriptFailed as error:
        if place.answer.exists():
            problem = _decode(read_regular(place.answer)).error
            raise running.ScriptFailed(problem, cause_of_text(problem)) from None
        process = f"the process of {call.name}"
        raise running.ScriptFailed(str(error).replace(running.shown(words), process), error.cause) from None
    if not place.answer.exists():
        raise running.ScriptFailed(f"{call.name} ended its process before it returned, by os._exit or the like")
    return msgspec.structs.replace(_decode(read_regular(place.answer)), memory_bytes=run_end.peak_bytes)


def thinned(curve: Sequence[Numbers], points: int) -> list[Numbers]:
    """Return `points` items of a curve at equal distances, the last one among them; a shorter curve has repetitions."""
    return [curve[math.ceil((point + 1) * len(curve) / points) - 1] for point in range(points)]


def _numbers_of(point: Mapping[str, str], function: str, outcome: str) -> Numbers:
    numbers = {name or outcome: float(value) for name, value in point.items()}
    if outcome not in numbers:
        raise ValueError(_no_outcome(list(numbers), function, outcome))
    return numbers


def _no_outcome(returned_names: Sequence[str], function: str, outcome: str) -> str:
    """Return the error for a function that returned no number with the outcome's name."""
    names = listed([repr(name) for name in returned_names])
    if outcome == DEFAULT_OUTCOME:
        return f"{function} returned {names}; say which one decides, as higher or lower"
    problem = f"{function} returned no {outcome!r}, but {names}"
    if close_names(outcome, returned_names, 1):
        return f"{problem}; {did_you_mean(outcome, returned_names)}"
    return f"{problem}; name one of these as higher or lower"
