"""Read outcomes of runs done elsewhere: one row per run, from a CSV file, a data frame or arrays.

A row gives the run's group, its pair (for example a random seed) or just a name, its outcome and, if there are several,
its task and cluster. A run without an outcome is lost: it was planned and failed. Every error names the row and the
column.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files import read_regular
from esper_ab.contracts.measures import LARGEST_OUTCOME, countable
from esper_ab.contracts.plain_number import plain_number
from esper_ab.contracts.wording import visible_line
from esper_ab.verdict.observations import ITEMS, Observation, Observations, is_integer
from esper_ab.verdict.vocabulary import MEAN

PAIR_COLUMNS = ("seed", "pair", "replicate")  # one of them says which runs belong together
COLUMNS = ("group", *PAIR_COLUMNS, "run", "outcome", "task", "cluster", "order")
# Other names of columns: in `esper-ab export`, in a grid, and in plans of format 1, in this order.
_ALSO = {"group_id": "group", "cell": "task", "endpoint": "outcome"}
_NOTHING = ("", "nan", "<na>", "na", "n/a", "null", "none")  # lower-case texts of a missing outcome, cluster or order
_MISSING = ("nan", "<NA>", "NaT")  # how data frames show a missing cell
LONGEST_NAME = 60  # characters


def observations_of(
    source: str, columns: Mapping[str, Sequence[object]], row_numbers: Sequence[int],
    names: Mapping[str, str] | None = None,
) -> Observations:  # fmt: skip
    """Check the cells of `columns` (values by column name) and make observations from them.

    `row_numbers`: the number of each row, for messages. `names`: our column name -> the source's, where the two differ.
    """
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
    if "run" in used:
        _check_once(source, rows, "run", used["run"], ITEMS)
    if pair_column:
        _check_once(source, rows, "replicate", used[pair_column], "one row per run")
    return Observations(source=source, pair_column=pair_column, rows=tuple(rows))


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
        lacks, flag = " or ".join(map(repr, missing)), ",".join(f"{name}=NAME" for name in missing)
        unpaired = "; if runs are not paired, run=NAME in place of seed=NAME" if "seed" in missing else ""
        raise UsageError(f"{source} has no column {lacks}; {has}; say which with --columns {flag}{unpaired}")
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
    """Map our name to the source's name for each known column. Raises UsageError if two columns have the same meaning.
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
    cluster, order = ("" if text.lower() in _NOTHING else text for text in (name("cluster"), name("order")))
    if order and not is_integer(order):
        raise UsageError(f"{source}, row {row}, column {used['order']}: {order!r} is not a whole number")
    where = f"{source}, row {row}, column {used['outcome']}"
    return Observation(
        group=name("group"), replicate=name(pair_column), task=task,
        cluster=cluster, run=name("run"), value=_number(cells["outcome"], where), row=row,
        order=int(order) if order else None,
    )  # fmt: skip


def _number(cell: object, where: str) -> float | None:
    """Return the outcome in a cell; None for an empty cell, which marks a failed run."""
    text = cell_text(cell)
    if text.lower() in _NOTHING:
        return None
    try:
        value = plain_number(text) + 0.0  # turns -0.0 into 0.0
    except ValueError:
        shown = f"{where}: {visible_line(text, 40)!r}"
        raise UsageError(f"{shown} is not a number, as in 71.25; leave it empty for a failed run") from None
    if not countable(value):
        why = f"beyond {LARGEST_OUTCOME:g}" if math.isfinite(value) else "not finite"
        raise UsageError(f"{where}: {text} is {why}; leave it empty for a failed run")
    return value


def cell_text(cell: object) -> str:
    """Return a cell as a user would type it: a seed that is stored in a data frame as the float 3.0 gives "3"."""
    if cell is None or (not isinstance(cell, str) and str(cell) in _MISSING):
        return ""
    if isinstance(cell, Real) and not isinstance(cell, Integral):
        value = float(cell)
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(cell).strip()


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


# --- csv file --------------------------------------------------------------------------------------------------------
# A CSV file of outcomes: a header line, then one row per run.


_LARGEST_BYTES = 64 * 2**20
_MOST_COLUMNS = 1000
_STARTS = {";": "semicolons", "\t": "tabs"}


def read_csv(file: Path, names: Mapping[str, str] | None = None) -> Observations:
    """Read `file`. Raises UsageError, with row and column, if it is not a valid table of outcomes.

    Rows are counted as in an editor: the header is row 1. `names`: our column name -> the file's, where the two differ.
    """
    text = _text(file)
    if text.lstrip()[:1] in ("{", "["):
        raise UsageError(f"{file} is JSON; expected a CSV file with a header line such as group,seed,outcome")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    numbers, rows = [], []
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(file, header)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                at = f"column {header[len(cells)]}" if len(cells) < len(header) else f"after column {header[-1]}"
                raise UsageError(
                    f"{file}, row {reader.line_num}, {at}: the row has {len(cells)} cells, the header {len(header)}"
                )
            numbers.append(reader.line_num)
            rows.append(cells)
    except csv.Error as error:
        raise UsageError(f"{file}, row {reader.line_num}: invalid CSV: {error}") from None
    columns = {name: [row[place] for row in rows] for place, name in enumerate(header)}
    return observations_of(str(file), columns, numbers, names)


def _text(file: Path) -> str:
    """Return the text of the file without its byte-order mark."""
    content = read_regular(file, _LARGEST_BYTES)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content[: error.start].count(b"\n") + 1
        raise UsageError(f"{file}, row {row}: byte {error.start} is not valid UTF-8") from None


def _check_header(file: Path, header: list[str]) -> None:
    if not any(header):
        raise UsageError(f"{file} is empty: it needs a header line such as group,seed,outcome")
    for separator, words in _STARTS.items():
        if len(header) == 1 and separator in header[0]:
            raise UsageError(f"{file}, row 1: columns are separated by {words}; use commas")
    if len(header) > _MOST_COLUMNS:
        raise UsageError(f"{file}, row 1: {len(header)} columns; at most {_MOST_COLUMNS} are allowed")
    for place, name in enumerate(header):
        if name in header[:place]:
            raise UsageError(f"{file}, row 1, column {place + 1}: the column name {name!r} occurs twice")


# --- frames ----------------------------------------------------------------------------------------------------------
# Outcomes from Python: a data frame of any library, columns by name, or an array of outcomes per group.


_SOURCE = "the data"


def read_data(data: Any, names: Mapping[str, str] | None = None) -> Observations:
    """Read outcomes from `data`. Raises UsageError if they are invalid. Rows are counted from 0.

    A data frame (pandas, polars, pyarrow) or a mapping of columns has the columns group, outcome, and seed or pair (or
    run). The columns task and cluster are optional. A mapping from groups to arrays has only outcomes: values at the
    same index form a pair, and NaN is a lost run.
    """
    if isinstance(data, Observations):
        return data
    columns = _columns_of_frame(data)
    if not names and not {meaning(name) for name in columns} & {*COLUMNS}:
        columns = _long(columns)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"{_SOURCE}: the columns have different lengths: {lengths}")
    return observations_of(_SOURCE, columns, range(next(iter(lengths.values()), 0)), names)


def _columns_of_frame(data: Any) -> dict[str, list[Any]]:
    """Return values by column name. Iterating over a column works in the same way in all data frame libraries."""
    named = getattr(data, "column_names", None) or getattr(data, "columns", None)
    names = list(data) if isinstance(data, Mapping) else named
    if names is None or not all(isinstance(name, str) for name in names):
        kind = type(data).__name__
        raise UsageError(f"{_SOURCE}: expected a data frame or a mapping of names to arrays, not {kind}")
    return {name: _values(name, data[name]) for name in names}


def _values(name: str, column: Any) -> list[Any]:
    if getattr(column, "ndim", 1) != 1:
        raise UsageError(f"{_SOURCE}, column {name}: expected an array of one dimension, not of {column.ndim}")
    if isinstance(column, str) or not isinstance(column, Iterable):
        raise UsageError(f"{_SOURCE}, column {name}: expected an array, not {column!r}")
    plain = getattr(column, "to_pylist", None) or getattr(column, "tolist", None) or getattr(column, "to_list", None)
    return list(plain() if plain else column)


def _long(by_group: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return one row per outcome from arrays by group; values at the same index form a pair."""
    return {
        "group": [group for group, values in by_group.items() for _ in values],
        "pair": [place for values in by_group.values() for place in range(len(values))],
        "outcome": [value for values in by_group.values() for value in values],
    }
