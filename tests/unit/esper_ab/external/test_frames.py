import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.elsewhere import drawn, outcomes, rows

from esper_ab.contracts.errors import UsageError
from esper_ab.external.frames import read_data

FOUND = rows(*drawn(7, 1.0))


@pytest.mark.parametrize("make", [
    lambda frame: frame, pl.from_pandas, pa.Table.from_pandas, lambda frame: {name: frame[name] for name in frame},
], ids=["pandas", "polars", "pyarrow", "columns"])  # fmt: skip
def test_every_kind_of_data_frame_is_one(make):
    read = read_data(make(pd.DataFrame(FOUND)))
    assert [row.value for row in read.rows] == [row["outcome"] for row in FOUND]
    assert read.rng_seed == outcomes(FOUND).rng_seed


def test_arrays_by_group_are_paired_by_place():
    read = read_data({"new": np.array([1.0, np.nan]), "old": [3.0, 4.0]})
    found = [(row.group, row.replicate, row.value) for row in read.rows]
    assert found == [("new", "0", 1.0), ("new", "1", None), ("old", "0", 3.0), ("old", "1", 4.0)]


@pytest.mark.parametrize("data", [
    3, [1.0, 2.0], {"a": np.ones((2, 2)), "b": np.ones((2, 2))},
    {"group": ["a"], "seed": [0, 1], "outcome": [1.0, 2.0]}, {}, {"a": ["x"], "b": [1.0]}, {"a": 3, "b": 4},
    {"a": "12", "b": "34"},
])  # fmt: skip
def test_anything_else_is_refused(data):
    with pytest.raises(UsageError):
        read_data(data)
