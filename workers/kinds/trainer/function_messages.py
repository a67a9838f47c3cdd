"""What the process of a user's function is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from esper_ab.contracts.code_state import CodeTree
from esper_ab.contracts.trainer import DEFAULT_OUTCOME, TrainerValue
from esper_ab.contracts.wording import close_names, did_you_mean, listed

ORDER = "call.json"
RETURNED = "returned.json"
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


def _numbers_of(point: Mapping[str, str], function: str, outcome: str) -> Numbers:
    numbers = {name or outcome: float(value) for name, value in point.items()}
    if outcome not in numbers:
        raise ValueError(_no_outcome(list(numbers), function, outcome))
    return numbers


def _no_outcome(returned_names: Sequence[str], function: str, outcome: str) -> str:
    """Return the error for a function that returned no number with the outcome's name."""
    names = listed([repr(name) for name in returned_names])
    if outcome == DEFAULT_OUTCOME:
        flags = "--higher NAME or --lower NAME (in Python higher, lower)"
        return f"{function} returned {names}; say which one decides: {flags}"
    problem = f"{function} returned no {outcome!r}, but {names}"
    if close_names(outcome, returned_names, 1):
        return f"{problem}; {did_you_mean(outcome, returned_names)}"
    return f"{problem}; name one of these as higher or lower"
