"""Which columns of a table of outcomes have which meaning. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from esper_ab.contracts.errors import SettingName, UsageError
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
    named_columns = _read_names(names)
    other_columns = [
        column for column in columns if meaning(column) not in named_columns and column not in named_columns.values()
    ]
    used_columns = _known_columns(source, other_columns) | named_columns
    for our_name, their_name in used_columns.items():
        if their_name not in columns:
            raise UsageError(
                f"{source} has no column {their_name!r}, which ",
                SettingName("columns", {our_name: their_name}),
                f" names; {_list_columns(columns)}",
            )
    pairs = [column for column in PAIR_COLUMNS if column in used_columns]
    missing_columns = _find_missing(used_columns, other_columns, rows)
    if "group" in missing_columns and "outcome" in missing_columns and "item" not in named_columns:
        used_otherwise = {column for name, column in used_columns.items() if name != "item"}
        ask_for_groups(source, {column: columns[column] for column in other_columns if column not in used_otherwise})
    if missing_columns:
        raise UsageError(*_explain_missing(source, columns, missing_columns))
    if len(pairs) > 1:
        chosen_pairs = [column for column in pairs if column in named_columns]
        if len(chosen_pairs) != 1:
            pair_columns = " and ".join(pairs)
            raise UsageError(
                f"{source} has the columns {pair_columns}, but only one may pair runs: choose it with ",
                SettingName("columns", {"pair": "NAME"}),
            )
        used_columns = {
            our_name: their_name
            for our_name, their_name in used_columns.items()
            if our_name not in pairs or our_name in chosen_pairs
        }
    return used_columns


def check_control(
    source: str, columns: Mapping[str, Cells], used_names: Mapping[str, str], control: str, rows: str | None
) -> None:
    """Raise UsageError if no column is that of groups, and none is called like `control`, a group.

    `used_names` and `rows` are as in `choose_columns`. The message names the column of text that has the control, if it
    is the only one.
    """
    if "group" in used_names or control in columns:
        return
    other_columns = [column for column in columns if column not in used_names.values()]
    missing_names = _find_missing(used_names, other_columns, rows)
    columns_with_control = [
        column for column in other_columns if not are_numbers(columns[column]) and control in columns[column]
    ]
    if len(columns_with_control) != 1:
        raise UsageError(*_explain_missing(source, columns, missing_names))
    message = _explain_missing(source, columns, missing_names, group=columns_with_control[0])
    raise UsageError(*message, f" ({control} is in column {columns_with_control[0]})")


def _find_missing(used_names: Mapping[str, str], other_columns: Sequence[str], rows: str | None) -> list[str]:
    """Return our names of the needed columns that no column has; `other_columns` have names of their own."""
    items = "item" in used_names or rows == "items" or any(map(names_items, other_columns))
    pairs_known = any(column in used_names for column in PAIR_COLUMNS)
    runs_known = pairs_known or "run" in used_names or (items and rows != "runs")
    needed_columns = ("group", "outcome") if runs_known else ("group", "outcome", "seed")
    return [name for name in needed_columns if name not in used_names]


def _explain_missing(
    source: str, columns: Iterable[str], missing_columns: Sequence[str], group: str = "NAME"
) -> tuple[str | SettingName, ...]:
    """Return the parts of the message about columns that are needed and missing, with the option that names them.

    `group`: the column of groups, if it is known.
    """
    missing_words = " or ".join(map(repr, missing_columns))
    known_names = {"group": group}
    option = SettingName("columns", {name: known_names.get(name, "NAME") for name in missing_columns})
    remedy = ""
    if "seed" in missing_columns:
        remedy = (
            "; if runs are not paired, run=NAME in place of seed=NAME; if rows are items (questions, episodes), "
            "item=NAME"
        )
    return f"{source} has no column {missing_words}; {_list_columns(columns)}; say which with ", option, remedy


def _list_columns(columns: Iterable[str]) -> str:
    return f"its columns are {visible_line(', '.join(columns), 200)}"


def _known_columns(source: str, columns: Sequence[str]) -> dict[str, str]:
    """Map our name to the source's name for each known column.

    Raises UsageError if two columns have the same meaning.
    """
    known_columns: dict[str, str] = {}
    for their_name in columns:
        our_name = meaning(their_name)
        if our_name in known_columns:
            raise UsageError(
                f"{source} has the columns {known_columns[our_name]} and {their_name}, which mean the same: choose one "
                "with ",
                SettingName("columns", {our_name: "NAME"}),
            )
        if our_name in COLUMNS:
            known_columns[our_name] = their_name
    return known_columns


def _read_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return `names` with a single spelling of our name for each column."""
    named_columns: dict[str, str] = {}
    for our_name, their_name in names.items():
        column = SYNONYMS.get(our_name, our_name)
        if column not in COLUMNS:
            available_words = ", ".join((*COLUMNS, *SYNONYMS))
            raise UsageError(
                SettingName("columns", {our_name: "…"}), f": no such column; available columns: {available_words}"
            )
        if column in named_columns:
            raise UsageError(
                SettingName("columns", {our_name: their_name}),
                f": column '{column}' is already set to '{named_columns[column]}'; remove one",
            )
        named_columns[column] = their_name
    return named_columns
