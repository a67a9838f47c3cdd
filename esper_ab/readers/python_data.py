"""Outcomes given in Python: a data frame of any library, columns by name, or the outcomes of each group.

Values that have keys are put together by their keys, whatever their order: the keys of a mapping, the index of a pandas
Series. Values without keys are put together by position. A set has neither and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.cells import cell_text
from esper_ab.formats.column_names import COLUMNS, meaning
from esper_ab.readers.external_table import observations_of
from esper_ab.verdict.observations import POSITION, Observations

_SOURCE = "the data"


@dataclass(frozen=True)
class _Column:
    """Values of a column or of a group, with their keys; None: they have only positions."""

    values: list[Any]
    keys: list[str] | None
    mapped: bool = False  # the user wrote each key to its value


def read_data(
    data: Any, names: Mapping[str, str] | None = None, groups: Sequence[str] = (), rows: str | None = None
) -> Observations:
    """Read outcomes from `data`. Raises UsageError if they are invalid. Rows are counted from 0.

    A data frame (pandas, polars, pyarrow) or a mapping of columns has the columns group, outcome, and seed or pair (or
    run). The columns task and cluster are optional. A mapping from groups to outcomes has only outcomes: values with
    the same key form a pair or, if they have no keys, values at the same position; NaN is a lost run. `groups`: the
    columns that have the outcomes of one group each, if each row of the data is a seed. `rows`: what a row is, "runs"
    or "items"; None: the columns tell.
    """
    if isinstance(data, Observations):
        return data
    columns = {name: _read_column(name, values) for name, values in _named_columns(data).items()}
    if not names and not groups and not {meaning(name) for name in columns} & {*COLUMNS}:
        return _read_groups(columns, rows)
    table = _align(columns)
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"{_SOURCE}: the columns have different lengths: {lengths}")
    return observations_of(_SOURCE, table, range(next(iter(lengths.values()), 0)), names, groups, rows)


def _named_columns(data: Any) -> dict[str, Any]:
    """Return columns, or the outcomes of groups, by name."""
    if callable(getattr(data, "collect", None)):
        raise UsageError(f"{_SOURCE}: a {type(data).__name__} is a query without a result yet; pass its .collect()")
    names = _column_names(data)
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        kind = type(data).__name__
        if names is not None:
            kind += " with names that are not text"
        raise UsageError(
            f"{_SOURCE}: expected a data frame, or a mapping of names to arrays or of groups to outcomes, not {kind}"
        )
    return {name: data[name] for name in names}


def _column_names(data: Any) -> Any:
    """Return the names of the columns, which each library keeps elsewhere; None if `data` has none."""
    if isinstance(data, Mapping):
        return list(data)
    names = getattr(data, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(data, "columns", None)  # pandas, polars
    return names


def _read_column(name: str, given_values: Any) -> _Column:
    """Return the values and their keys. Iterating over a column works in the same way in all data frame libraries."""
    if isinstance(given_values, Mapping):
        return _Column(list(given_values.values()), _keys(name, given_values), mapped=True)
    if isinstance(given_values, Set):
        raise UsageError(
            f"{_SOURCE}, column {name}: a set has no order, so its outcomes cannot be paired; use a list, or a mapping "
            "of seeds to outcomes"
        )
    if getattr(given_values, "ndim", 1) != 1:
        raise UsageError(f"{_SOURCE}, column {name}: expected an array of one dimension, not of {given_values.ndim}")
    if isinstance(given_values, str | bytes) or not isinstance(given_values, Iterable):
        raise UsageError(f"{_SOURCE}, column {name}: expected an array, not {given_values!r}")
    convert_to_list = (
        getattr(given_values, "to_pylist", None)
        or getattr(given_values, "tolist", None)
        or getattr(given_values, "to_list", None)
    )
    values = convert_to_list() if convert_to_list else given_values
    index = getattr(given_values, "index", None)  # of a Series; `index` of a list is a method
    keys = _keys(name, index) if isinstance(index, Iterable) else None
    return _Column(list(values), keys)


def _keys(name: str, keys: Iterable[Any]) -> list[str]:
    texts = []
    for key in keys:
        if isinstance(key, tuple):
            raise UsageError(f"{_SOURCE}, column {name}: an index of several levels; make columns of it: reset_index()")
        texts.append(cell_text(key))
    return texts


def _read_groups(groups: Mapping[str, _Column], row_kind: str | None) -> Observations:
    """Read one row per outcome from the outcomes of each group; `row_kind`: what it is, as in `read_data`."""
    keys_by_group = {name: column.keys for name, column in groups.items() if column.keys is not None}
    groups_without_keys = [name for name in groups if name not in keys_by_group]
    if groups_without_keys and not all(_are_positions(keys) for keys in keys_by_group.values()):
        raise UsageError(
            f"{_SOURCE}: the outcomes of {next(iter(keys_by_group))} have keys and those of {groups_without_keys[0]} "
            "have none, so they "
            "cannot be paired; use a mapping of seeds to outcomes for each group"
        )
    rows: dict[str, list[Any]] = {"group": [], "pair": [], "outcome": []}
    for name, column in groups.items():
        count = len(column.values)
        rows["group"] += [name] * count
        rows["pair"] += range(count) if groups_without_keys else keys_by_group[name]
        rows["outcome"] += column.values
    observations = observations_of(_SOURCE, rows, range(len(rows["group"])), rows=row_kind)
    if groups_without_keys:
        return msgspec.structs.replace(observations, pair_column=POSITION)
    return msgspec.structs.replace(observations, paired_by_key=all(column.mapped for column in groups.values()))


def _are_positions(keys: Sequence[str]) -> bool:
    """True if the keys are 0, 1, 2, …, so that they say no more than the order of the values."""
    return list(keys) == [str(position) for position in range(len(keys))]


def _align(columns: Mapping[str, _Column]) -> dict[str, list[Any]]:
    """Return the values of all columns by row: in the order of the first column's keys if columns have keys."""
    keys_by_column = {name: column.keys for name, column in columns.items() if column.keys is not None}
    first_keys = next(iter(keys_by_column.values()), [])
    if all(keys == first_keys for keys in keys_by_column.values()):
        return {name: column.values for name, column in columns.items()}
    same_keys = all(set(keys) == set(first_keys) and len(set(keys)) == len(keys) for keys in keys_by_column.values())
    if len(keys_by_column) < len(columns) or not same_keys:
        raise UsageError(
            f"{_SOURCE}: the columns {', '.join(columns)} have different keys (index), so it is not known which values "
            "make a row; make a data frame of them first"
        )
    by_key = {name: dict(zip(keys, columns[name].values, strict=True)) for name, keys in keys_by_column.items()}
    return {name: [by_key[name][key] for key in first_keys] for name in columns}
