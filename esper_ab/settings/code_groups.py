"""--code NAME=STATE: one group per state of the code. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from esper_ab.contracts.code_state import read_code
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.wording import listed
from esper_ab.settings.assignments import Assignment, split_commas
from esper_ab.settings.schema import CODE

_TABLE = f"{CODE}."  # prefix of the keys of a table [code], or of a dict in Python


def joined_code(assignments: Iterable[Assignment]) -> Iterator[Assignment]:
    """Yield the assignments; those of a table [code] become one list, as --code gives it."""
    entries = list[Assignment]()
    for assignment in assignments:
        if assignment.key.startswith(_TABLE):
            entries.append(assignment)
        else:
            yield assignment
    if entries:
        values = [f"{entry.key.removeprefix(_TABLE)}={_text(entry)}" for entry in entries]
        yield replace(entries[0], key=CODE, value=values)


def _text(assignment: Assignment) -> str:
    if "=" in assignment.key:
        raise UsageError(f"{assignment.origin}: the name of a group with its own state of the code has no =; rename it")
    if not isinstance(assignment.value, str):
        raise UsageError(f"{assignment.origin}: expected a commit or a folder as text, not {assignment.value!r}")
    return assignment.value


def states_of(assignments: Iterable[Assignment]) -> dict[str, str]:
    """Return the state of each group from the first of `assignments` that sets them; UsageError for an invalid one."""
    for assignment in assignments:
        if assignment.key == CODE:
            entries = assignment.value
            if isinstance(entries, str):  # of --set code=[base=main,head=.]
                entries = split_commas(entries.strip("[]"), assignment.origin)
            try:
                return read_code(list(map(str, entries)))
            except ValueError as error:
                raise UsageError(f"{assignment.origin}: {error}") from None
    return {}


def check_code_groups(code: Mapping[str, str], groups: Sequence[str]) -> None:
    """Raise UsageError unless there are several groups, and each has a state of the code."""
    if len(code) == 1 == len(groups):
        raise UsageError(
            SettingName(CODE),
            f": {groups[0]} is the only state; add one to compare it with, as in ",
            SettingName(CODE, "head=."),
        )
    if stateless_groups := [group for group in groups if group not in code]:
        raise UsageError(
            SettingName("groups"),
            f": {listed(stateless_groups)} would have no state of the code; give one, as in ",
            SettingName(CODE, f"{stateless_groups[0]}=main"),
            ", because each group of such an experiment has its own",
        )
