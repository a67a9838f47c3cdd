"""Read outcomes of runs done elsewhere: one row per run, from a CSV file or from columns of cells.

A row gives the run's group, its pair (for example a random seed) or just a name, its outcome and, if there are several,
its task and cluster. A run without an outcome is lost: it was planned and failed. Every error names the row and the
column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import listed
from esper_ab.readers.cells import NOTHING, cell_text, outcome_of
from esper_ab.readers.group_columns import check_groups
from esper_ab.readers.run_states import without_crashed
from esper_ab.readers.seed_names import one_name_per_seed
from esper_ab.readers.wide_table import ask_for_groups, long_of
from esper_ab.verdict.observations import ITEMS, Observation, Observations, is_integer, names_items
from esper_ab.verdict.scale import MEAN

PAIR_COLUMNS = ("seed", "pair", "replicate")  # one of them says which runs belong together
COLUMNS = ("group", *PAIR_COLUMNS, "run", "outcome", "task", "cluster", "order")
# Other names of columns: in `esper-ab export`, in a grid, and in plans of format 1, in this order.
_ALSO = {"group_id": "group", "cell": "task", "endpoint": "outcome"}
LONGEST_NAME = 60  # characters


def observations_of(
    source: str,
    columns: Mapping[str, Sequence[object]],
    row_numbers: Sequence[int],
    names: Mapping[str, str] | None = None,
    groups: Sequence[str] = (),
) -> Observations:
    """Check the cells of `columns` (values by column name) and make observations from them.

    `row_numbers`: the number of each row, for messages. `names`: our column name -> the source's, where the two differ.
    `groups`: the columns that have the outcomes of one group each, if each row is a seed and not a run.
    """
    if groups:
        told = {meaning(name) for name in columns} | {*(names or {})}
        by_row = told.isdisjoint((*PAIR_COLUMNS, "run"))
        _refuse_rows_of_runs(source, columns, groups)
        columns, row_numbers = long_of(source, columns, row_numbers, groups, by_row=by_row)
    used = _columns(source, columns, names or {})
    pair_column = next((column for column in PAIR_COLUMNS if column in used), "")
    rows = []
    for index, number in enumerate(row_numbers):
        cells = {ours: columns[theirs][index] for ours, theirs in used.items()}
        rows.append(_observation(source, used, cells, pair_column or "run", number))
    if not rows:
        raise UsageError(
            f"{source} has no rows: it needs one row per run, with the columns group, seed (or pair or run) and "
            "outcome, and also task and cluster if there are several tasks or clusters"
        )
    if "group" in (names or {}):
        check_groups(source, used["group"], rows)
    rows, crashed = without_crashed(source, columns, used.values(), rows)
    items = [name for name in columns if names_items(name)]
    if "run" in used:
        _check_once(source, rows, "run", used["run"], ITEMS)
    notes: tuple[str, ...] = ()
    if pair_column:
        rows, notes = one_name_per_seed(rows, pair_column)
        if items:
            why = f"{listed(items)} {'names' if len(items) == 1 else 'name'} items: {ITEMS}"
        else:
            why = "one row per run"
        _check_once(source, rows, "replicate", used[pair_column], why)
    return Observations(
        source=source,
        pair_column=pair_column,
        rows=tuple(rows),
        outcome_column=used["outcome"],
        notes=(*notes, *crashed),
        run_column=used[pair_column or "run"],
    )


def _refuse_rows_of_runs(source: str, columns: Iterable[str], groups: Sequence[str]) -> None:
    """Raise UsageError if, beside the columns of groups, one tells the group or the outcome of a single run."""
    for name in columns:
        if name not in groups and (ours := meaning(name)) in ("group", "outcome"):
            means = "" if name == ours else f" ({ours})"
            raise UsageError(
                Setting("groups"),
                f": {source} has a column {name!r}{means}, so each row is one run already; leave out ",
                Setting("groups"),
                f", or remove {name}",
            )


def _columns(source: str, columns: Mapping[str, Sequence[object]], names: Mapping[str, str]) -> dict[str, str]:
    """Return a mapping from our name to the source's name, for the columns that are used."""
    named = _named(names)
    others = [theirs for theirs in columns if meaning(theirs) not in named and theirs not in named.values()]
    used = _ours(source, others) | named
    has = f"its columns are {visible_line(', '.join(columns), 200)}"
    for ours, theirs in used.items():
        if theirs not in columns:
            raise UsageError(f"{source} has no column {theirs!r}, which --columns {ours}={theirs} names; {has}")
    pairs = [column for column in PAIR_COLUMNS if column in used]
    needed = ("group", "outcome") if pairs or "run" in used else ("group", "outcome", "seed")
    if missing := [name for name in needed if name not in used]:
        if {"group", "outcome"} <= {*missing}:
            ask_for_groups(source, {name: columns[name] for name in others if name not in used.values()})
        lacks = " or ".join(map(repr, missing))
        flag = ",".join(f"{name}=NAME" for name in missing)
        if "seed" in missing:
            unpaired = "; if runs are not paired, run=NAME in place of seed=NAME"
        else:
            unpaired = ""
        items = [name for name in columns if names_items(name)] if "seed" in missing else []
        if items:
            not_runs = f"; {listed(items)} {'names' if len(items) == 1 else 'name'} items, not runs"
        else:
            not_runs = ""
        raise UsageError(f"{source} has no column {lacks}; {has}; say which with --columns {flag}{unpaired}{not_runs}")
    if len(pairs) > 1:
        chosen = [column for column in pairs if column in named]
        if len(chosen) != 1:
            both = " and ".join(pairs)
            raise UsageError(
                f"{source} has the columns {both}, but only one may pair runs: choose it with --columns pair=NAME"
            )
        used = {ours: theirs for ours, theirs in used.items() if ours not in pairs or ours in chosen}
    return used


def meaning(name: str) -> str:
    """Return our name for a column of the source."""
    plain = name.strip().lower()
    return _ALSO.get(plain, plain)


def _ours(source: str, columns: Sequence[str]) -> dict[str, str]:
    """Map our name to the source's name for each known column.

    Raises UsageError if two columns have the same meaning.
    """
    found: dict[str, str] = {}
    for theirs in columns:
        ours = meaning(theirs)
        if ours in found:
            raise UsageError(
                f"{source} has the columns {found[ours]} and {theirs}, which mean the same: choose one with --columns "
                f"{ours}=NAME"
            )
        if ours in COLUMNS:
            found[ours] = theirs
    return found


def _named(names: Mapping[str, str]) -> dict[str, str]:
    """Return `names` with a single spelling of our name for each column."""
    found: dict[str, str] = {}
    for ours, theirs in names.items():
        column = _ALSO.get(ours, ours)
        if column not in COLUMNS:
            raise UsageError(f"--columns {ours}=…: no such column; available columns: {', '.join((*COLUMNS, *_ALSO))}")
        if column in found:
            raise UsageError(
                f"--columns {ours}={theirs}: column '{column}' is already set to '{found[column]}'; remove one"
            )
        found[column] = theirs
    return found


def _observation(
    source: str, used: Mapping[str, str], cells: dict[str, object], pair_column: str, row: int
) -> Observation:
    def name(column: str) -> str:
        text = cell_text(cells.get(column, ""))
        where = f"{source}, row {row}, column {used.get(column, column)}"
        if not text and column in used and column not in ("cluster", "order"):
            raise UsageError(f"{where}: empty, but every run needs a value here")
        if len(text) > LONGEST_NAME or not text.isprintable():
            shown = visible_line(text, LONGEST_NAME)
            raise UsageError(f"{where}: {shown!r} is not a printable name of at most {LONGEST_NAME} characters")
        return text

    task = name("task")
    if task == MEAN:
        raise UsageError(f"{source}, row {row}, column {used['task']}: the name {MEAN!r} is reserved")
    cluster, order = ("" if text.lower() in NOTHING else text for text in (name("cluster"), name("order")))
    if order and not is_integer(order):
        raise UsageError(f"{source}, row {row}, column {used['order']}: {order!r} is not a whole number")
    where = f"{source}, row {row}, column {used['outcome']}"
    return Observation(
        group=name("group"),
        replicate=name(pair_column),
        task=task,
        cluster=cluster,
        run=name("run"),
        value=outcome_of(cells["outcome"], where),
        row=row,
        order=int(order) if order else None,
    )


def _check_once(source: str, rows: Sequence[Observation], field: str, column: str, why: str) -> None:
    """Raise UsageError if two rows of one group and task have the same value in `field`."""
    seen: dict[tuple[str, str, str], int] = {}
    for row in rows:
        name = getattr(row, field)
        first = seen.setdefault((row.group, name, row.task), row.row)
        if first != row.row:
            of_task = f" and task {row.task}" if row.task else ""
            raise UsageError(
                f"{source}, row {row.row}, column {column}: group {row.group} also has {column} {name}{of_task} in row "
                f"{first}; {why}"
            )
