"""Tables with a row per seed and a column per group, turned into a row per run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esper_ab.contracts.errors import OpenQuestion, SettingName, Unanswered, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import did_you_mean, listed
from esper_ab.formats.cells import cell_text, outcome_of
from esper_ab.readers.steps import step_column
from esper_ab.verdict.observations import names_items, unit_of

_INDEX = ("", "Unnamed: 0")  # pandas' names for a column with the numbers of the rows
_FEWEST_COUNTED = 3  # different numbers of a count; fewer may be outcomes


def long_of(
    source: str,
    columns: Mapping[str, Sequence[object]],
    row_numbers: Sequence[int],
    groups: Sequence[str],
    *,
    by_row: bool,
) -> tuple[dict[str, list[object]], list[int]]:
    """Return a table with a row per run, and the number of each row in the source.

    `groups` are the columns with outcomes. Every other column is repeated for each group. `by_row`: no column names the
    seeds, so that the rows of the source are the pairs. Raises UsageError if a column does not exist, if fewer than two
    are named, or if a cell is not a number.
    """
    for name in groups:
        if name not in columns:
            raise UsageError(SettingName("groups"), f": {source} has no column {name!r}; {did_you_mean(name, columns)}")
    if len(set(groups)) < max(2, len(groups)):
        raise UsageError(SettingName("groups"), ": name at least two columns, each of them once")
    other_columns = {name: cells for name, cells in columns.items() if name not in groups}
    our_names = ("group", "pair", "outcome") if by_row else ("group", "outcome")
    table: dict[str, list[object]] = {name: [] for name in (*our_names, *other_columns)}
    numbers = []
    for place, number in enumerate(row_numbers):
        for group in groups:
            numbers.append(number)
            table["group"].append(group)
            table["outcome"].append(outcome_of(columns[group][place], f"{source}, row {number}, column {group}"))
            if by_row:
                table["pair"].append(number)
            for name, cells in other_columns.items():
                table[name].append(cells[place])
    return table, numbers


def ask_for_groups(source: str, columns: Mapping[str, Sequence[object]]) -> None:
    """Raise Unanswered if at least two of the columns have only outcomes, so that they may be groups.

    Nothing in the table tells groups from different measures of the same runs. Beside text, items in several rows or a
    count, columns are no groups. Raises UsageError for the curves of a chart of W&B, whose rows are steps.
    """
    if curves := [name for name in columns if {f"{name}__MIN", f"{name}__MAX"} <= {*columns}]:
        rest_words = ""
        if len(curves) > 1:
            rest_words = f" and {len(curves) - 1} more"
        raise UsageError(
            f"{source}: it has the curves of a chart of W&B, a column per run "
            f"({visible_line(curves[0], 60)}{rest_words}) "
            "and a row per step; needed is a row per run, with the columns group, seed and outcome"
        )
    cells_by_name = {name: cells for name, cells in columns.items() if name not in _INDEX}
    item_columns = [name for name in cells_by_name if names_items(name)]
    row_words = "a seed"
    if item_columns:
        if len(item_columns) > 1 or not _are_one_per_row(item_columns[0], cells_by_name.pop(item_columns[0])):
            return
        unit = unit_of(item_columns[0])
        article = "a"
        if unit[0] in "aeiou":
            article = "an"
        row_words = f"{article} {unit}"
    if any(map(_are_texts, cells_by_name.values())):
        return
    likely_groups = tuple(name for name, cells in cells_by_name.items() if _are_outcomes(cells))
    if any(step_column([name]) or _count_up(columns[name]) for name in likely_groups):
        return
    if len(likely_groups) > 1:
        raise Unanswered(
            source,
            [
                OpenQuestion(
                    f"it has no columns 'group' and 'outcome'; if each row is {row_words}, and {listed(likely_groups)} "
                    f"are the groups",
                    (SettingName("groups", likely_groups),),
                )
            ],
        )


def _are_one_per_row(column: str, cells: Sequence[object]) -> bool:
    """True if each row has an item of its own, and items are no episodes, which number the rows of a run."""
    return not step_column([column]) and len({cell_text(cell) for cell in cells}) == len(cells)


def _are_outcomes(cells: Sequence[object]) -> bool:
    try:
        return any(outcome_of(cell, "") is not None for cell in cells)
    except UsageError:
        return False


def _are_texts(cells: Sequence[object]) -> bool:
    return not _are_outcomes(cells) and any(map(cell_text, cells))


def _count_up(cells: Sequence[object]) -> bool:
    """True if the cells are 0, 1, 2, … or 1, 2, 3, …, once or again and again."""
    texts = [cell_text(cell) for cell in cells]
    if texts[0] not in ("0", "1"):
        return False
    first_number = int(texts[0])
    period = len({*texts})
    if period < _FEWEST_COUNTED:
        return False
    return texts == [str(first_number + place % period) for place in range(len(texts))]
