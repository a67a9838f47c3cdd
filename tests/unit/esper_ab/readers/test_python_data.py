"""Outcomes in Python: pairing by key, position or index, in any container."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.outcomes.csv_outcomes import drawn, outcomes, rows

from esper_ab.contracts.errors import Unanswered, UsageError
from esper_ab.readers.python_data import read_data

TABLE = rows(*drawn(7, 1.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda frame: frame,
        pl.from_pandas,
        pa.Table.from_pandas,
        lambda frame: {name: frame[name] for name in frame},
    ],
    ids=["pandas", "polars", "pyarrow", "columns"],
)
def test_every_kind_of_data_frame_is_read(make):
    table_read = read_data(make(pd.DataFrame(TABLE)))
    assert [row.value for row in table_read.rows] == [row["outcome"] for row in TABLE]
    assert table_read.rng_seed == outcomes(TABLE).rng_seed


def test_arrays_by_group_are_paired_by_position():
    table_read = read_data({"new": np.array([1.0, np.nan]), "old": [3.0, 4.0]})
    rows = [(row.group, row.replicate, row.value) for row in table_read.rows]
    assert rows == [("new", "0", 1.0), ("new", "1", None), ("old", "0", 3.0), ("old", "1", 4.0)]


OLD = {seed: 10.0 + 3.0 * (seed * 7 % 11) for seed in range(8)}
NEW = {seed: value + 2.0 for seed, value in OLD.items()}


def _shuffled(runs):
    return {seed: runs[seed] for seed in (5, 0, 7, 2, 1, 6, 4, 3)}


def _columns(old_runs, new_runs):
    """Three columns, of which each has the row's name as key."""
    cells = [
        (f"{group}{seed}", group, seed, value)
        for group, runs in (("old", old_runs), ("new", new_runs))
        for seed, value in runs.items()
    ]
    columns = {"group": 1, "seed": 2, "outcome": 3}
    return {name: {cell[0]: cell[place] for cell in cells} for name, place in columns.items()}


def _columns_in_other_orders(old_runs, new_runs):
    columns = _columns(old_runs, new_runs)
    return columns | {"outcome": dict(reversed(columns["outcome"].items()))}


@pytest.mark.parametrize("order", [dict, _shuffled], ids=["in order", "shuffled"])
@pytest.mark.parametrize(
    "make",
    [
        lambda old, new: {"old": old, "new": new},
        lambda old, new: {"old": pd.Series(old), "new": pd.Series(new)},
        lambda old, new: {"old": pd.Series(old), "new": new},
        lambda old, new: {"old": {str(seed): value for seed, value in old.items()}, "new": pd.Series(new)},
        lambda old, new: {"old": {float(seed): value for seed, value in old.items()}, "new": new},
        lambda old, new: pd.DataFrame({"old": old, "new": new}),
        lambda old, new: pd.DataFrame({"old": old, "new": new}).to_dict(),
        _columns,
        _columns_in_other_orders,
        lambda old, new: {name: pd.Series(cells) for name, cells in _columns_in_other_orders(old, new).items()},
        lambda old, new: pd.DataFrame(_columns(old, new)),
    ],
)
def test_values_with_keys_are_paired_by_key(make, order):
    table_read = read_data(make(OLD, order(NEW)))
    assert {(row.group, row.replicate): row.value for row in table_read.rows} == {
        **{("old", str(seed)): value for seed, value in OLD.items()},
        **{("new", str(seed)): value for seed, value in NEW.items()},
    }


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"a": {1.0, 2.0}, "b": [1.0, 2.0]}, "a set has no order"),
        ({"a": frozenset({1.0}), "b": [1.0]}, "a set has no order"),
        ({"a": {3: 1.0}.keys(), "b": [1.0]}, "a set has no order"),
        ({"a": {5: 1.0, 6: 2.0}, "b": [1.0, 2.0]}, "the outcomes of a have keys and those of b have none"),
        ({"a": pd.Series([1.0, 2.0], index=[1, 0]), "b": [1.0, 2.0]}, "the outcomes of a have keys"),
        ({"group": ["a", "b"], "seed": {0: 0, 1: 0}, "outcome": {1: 2.0, 0: 1.0}}, "different keys"),
        (pd.DataFrame({"a": [1.0], "b": [2.0]}, index=pd.MultiIndex.from_tuples([(0, "x")])), "reset_index"),
        ({"a": pd.Series([1.0, 2.0], index=[0, 0]), "b": [1.0, 2.0]}, "the outcomes of a have keys"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}, index=[3, 3]), "group a also has pair 3 in row 0"),
        (pl.DataFrame({"a": [1.0]}).lazy(), "a LazyFrame is a query without a result yet; pass its .collect()"),
        (None, "expected a data frame, or a mapping"),
        (7, "expected a data frame"),
        ([1.0], "expected a data frame"),
        ({1: [1.0], 2: [2.0]}, "names that are not text"),
    ],
)
def test_outcomes_without_order_or_keys_are_refused(data, complaint):
    with pytest.raises(UsageError, match=complaint):
        read_data(data)


def test_series_with_a_default_index_are_paired_by_position():
    table_read = read_data({"a": pd.Series([1.0, 2.0]), "b": (value for value in [3.0, 4.0])})
    assert [(row.replicate, row.value) for row in table_read.rows] == [("0", 1.0), ("1", 2.0), ("0", 3.0), ("1", 4.0)]
    assert table_read.pair_column == "position"


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_frame_with_a_column_per_group_needs_the_names_of_its_groups(make):
    wide_frame = make({"seed": [7, 3], "new": [1.0, 2.0], "old": [3.0, 4.0]})
    with pytest.raises(Unanswered) as refusal:
        read_data(wide_frame)
    ((answer,),) = (question.answers for question in refusal.value.questions)
    assert (answer.key, answer.value) == ("groups", ("new", "old"))
    table_read = read_data(wide_frame, groups=answer.value)
    assert [(row.group, row.replicate, row.value) for row in table_read.rows] == [
        ("new", "7", 1.0),
        ("old", "7", 3.0),
        ("new", "3", 2.0),
        ("old", "3", 4.0),
    ]


@pytest.mark.parametrize(
    "true_value",
    [
        [True, False],
        np.array([True, False]),
        pd.Series([True, False]),
        pd.Series([True, False], dtype="boolean"),
        pl.Series([True, False]),
        pa.array([True, False]),
    ],
    ids=["list", "numpy", "pandas", "nullable", "polars", "arrow"],
)
def test_booleans_in_any_container_are_read_as_0_and_1(true_value):
    assert [row.value for row in read_data({"a": true_value, "b": [0, 1]}).rows] == [1.0, 0.0, 0.0, 1.0]
