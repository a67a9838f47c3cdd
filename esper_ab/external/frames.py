"""Outcomes from Python: a data frame of any library, columns by name, or an array of outcomes per group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.external.table import meaning, observations_of
from esper_ab.verdict.observations import Observations

_SOURCE = "the data"


def read_data(data: Any, names: Mapping[str, str] | None = None) -> Observations:
    """Take `data` for outcomes; UsageError for what is none. Rows are counted from 0.

    A data frame (pandas, polars, pyarrow), or a mapping of columns, has group, seed or pair or run, outcome[, task][,
    cluster]. A mapping of groups to arrays [pairs] has outcomes alone: those at one place form a pair, NaN is a lost
    run.
    """
    if isinstance(data, Observations):
        return data
    columns = _columns(data)
    if "outcome" not in {meaning(name) for name in columns} and "outcome" not in (names or {}):
        columns = _long(columns)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"{_SOURCE}: the columns are of different lengths: {lengths}")
    return observations_of(_SOURCE, columns, range(next(iter(lengths.values()), 0)), names)


def _columns(data: Any) -> dict[str, list[Any]]:
    """Name -> values. Every library of data frames iterates a column the same way."""
    names = getattr(data, "column_names", None) or getattr(data, "columns", None)
    if isinstance(data, Mapping):
        names = list(data)
    if names is None or not all(isinstance(name, str) for name in names):
        kind = type(data).__name__
        raise UsageError(f"{_SOURCE}: a data frame, or a mapping of names to arrays, is meant, not {kind}")
    return {name: _values(name, data[name]) for name in names}


def _values(name: str, column: Any) -> list[Any]:
    if getattr(column, "ndim", 1) != 1:
        raise UsageError(f"{_SOURCE}, column {name}: an array of one dimension is meant, not of {column.ndim}")
    if isinstance(column, str) or not isinstance(column, Iterable):
        raise UsageError(f"{_SOURCE}, column {name}: an array is meant, not {column!r}")
    plain = getattr(column, "to_pylist", None) or getattr(column, "tolist", None) or getattr(column, "to_list", None)
    return list(plain() if plain else column)


def _long(by_group: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """One row per outcome, from arrays by group; those at one place form a pair."""
    rows = [(group, place, value) for group, values in by_group.items() for place, value in enumerate(values)]
    group, pair, outcome = zip(*rows, strict=True) if rows else ((), (), ())
    return {"group": list(group), "pair": list(pair), "outcome": list(outcome)}
