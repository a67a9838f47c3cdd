"""Which columns of a table of outcomes have which meaning. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.formats.column_names import COLUMNS, PAIR_COLUMNS, SYNONYMS, meaning
from esper_ab.formats.source_table import Cells
from esper_ab.readers.metrics import are_numbers
from esper_ab.readers.wide_table import ask_for_groups
from esper_ab.verdict.observations import names_items


def choose_columns(
    source: str, columns: Mapping[str, Sequence[object]], names: Mapping[str, str], rows: str | None = None
) -> dict[str, str]:
    """Return a mapping from our name to the source's name, for the columns that are used.

    `names` has the columns that the user named, as --columns does: our name -> the source's. `rows`: "runs" or "items",
    as the user says. Rows of items need no column of runs: each group is then one run. Raises UsageError if a column is
    missing or two have the same meaning, and Unanswered if the user must say which columns are groups.
    """
    named = _read_names(names)
    others = [column for column in columns if meaning(column) not in named and column not in named.values()]
    used = _known_columns(source, others) | named
    for ours, theirs in used.items():
        if theirs not in columns:
            raise UsageError(
                f"{source} has no column {theirs!r}, which --columns {ours}={theirs} names; {_list_columns(columns)}"
            )
    pairs = [column for column in PAIR_COLUMNS if column in used]
    missing = _find_missing(used, others, rows)
    if "group" in missing and "outcome" in missing and "item" not in used:
        ask_for_groups(source, {column: columns[column] for column in others if column not in used.values()})
    if missing:
        raise UsageError(_explain_missing(source, columns, missing))
    if len(pairs) > 1:
        chosen = [column for column in pairs if column in named]
        if len(chosen) != 1:
            both = " and ".join(pairs)
            raise UsageError(
                f"{source} has the columns {both}, but only one may pair runs: choose it with --columns pair=NAME"
            )
        used = {ours: theirs for ours, theirs in used.items() if ours not in pairs or ours in chosen}
    return used


def check_control(
    source: str, columns: Mapping[str, Cells], used: Mapping[str, str], control: str, rows: str | None
) -> None:
    """Raise UsageError if no column is that of groups, and none is called like `control`, a group.

    `used` and `rows` are as in `choose_columns`. The message names the column of text that has the control, if it is
    the only one.
    """
    if "group" in used or control in columns:
        return
    others = [column for column in columns if column not in used.values()]
    missing = _find_missing(used, others, rows)
    holding = [column for column in others if not are_numbers(columns[column]) and control in columns[column]]
    if len(holding) != 1:
        raise UsageError(_explain_missing(source, columns, missing))
    message = _explain_missing(source, columns, missing, group=holding[0])
    raise UsageError(f"{message} ({control} is in column {holding[0]})")


def _find_missing(used: Mapping[str, str], others: Sequence[str], rows: str | None) -> list[str]:
    """Return our names of the columns that are needed and that no column has; `others` have names of their own."""
    items = "item" in used or rows == "items" or any(map(names_items, others))
    pairs_known = any(column in used for column in PAIR_COLUMNS)
    runs_known = pairs_known or "run" in used or (items and rows != "runs")
    needed = ("group", "outcome") if runs_known else ("group", "outcome", "seed")
    return [name for name in needed if name not in used]


def _explain_missing(source: str, columns: Iterable[str], missing: Sequence[str], group: str = "NAME") -> str:
    """Return the message about columns that are needed and missing, with the option that names them.

    `group`: the column of groups, if it is known.
    """
    lacks = " or ".join(map(repr, missing))
    known = {"group": group}
    option = ",".join(f"{name}={known.get(name, 'NAME')}" for name in missing)
    message = f"{source} has no column {lacks}; {_list_columns(columns)}; say which with --columns {option}"
    if "seed" in missing:
        message += (
            "; if runs are not paired, run=NAME in place of seed=NAME; if rows are items (questions, episodes), "
            "item=NAME"
        )
    return message


def _list_columns(columns: Iterable[str]) -> str:
    return f"its columns are {visible_line(', '.join(columns), 200)}"


def _known_columns(source: str, columns: Sequence[str]) -> dict[str, str]:
    """Map our name to the source's name for each known column.

    Raises UsageError if two columns have the same meaning.
    """
    known: dict[str, str] = {}
    for theirs in columns:
        ours = meaning(theirs)
        if ours in known:
            raise UsageError(
                f"{source} has the columns {known[ours]} and {theirs}, which mean the same: choose one with --columns "
                f"{ours}=NAME"
            )
        if ours in COLUMNS:
            known[ours] = theirs
    return known


def _read_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return `names` with a single spelling of our name for each column."""
    named: dict[str, str] = {}
    for ours, theirs in names.items():
        column = SYNONYMS.get(ours, ours)
        if column not in COLUMNS:
            available = ", ".join((*COLUMNS, *SYNONYMS))
            raise UsageError(f"--columns {ours}=…: no such column; available columns: {available}")
        if column in named:
            raise UsageError(
                f"--columns {ours}={theirs}: column '{column}' is already set to '{named[column]}'; remove one"
            )
        named[column] = theirs
    return named
