import numpy as np
import pandas as pd
import pytest
from support.outcomes.csv_outcomes import outcomes, rows

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.external_table import observations_of
from esper_ab.readers.python_data import read_data

TWO = {"group": ["a", "b"], "seed": ["0", "0"], "outcome": ["1", "2"]}


@pytest.mark.parametrize("cell", ["", " ", "nan", "NaN", "NA", "<NA>", "null", "None", None, float("nan"), pd.NA])
def test_an_empty_outcome_is_read_as_a_lost_run(cell):
    observations = observations_of("f", TWO | {"outcome": ["1", cell], "cluster": [cell, "one"]}, (2, 3))
    assert [(row.value, row.cluster) for row in observations.rows] == [(1.0, ""), (None, "one")]


@pytest.mark.parametrize("column", ["group", "seed"])
def test_an_empty_cell_for_a_name_is_refused(column):
    with pytest.raises(UsageError, match=f"row 2, column {column}"):
        observations_of("f", TWO | {column: [pd.NA, "b"]}, (2, 3))
    assert observations_of("f", TWO | {column: ["none", "b"]}, (2, 3)).rows[0].value == 1.0


def test_columns_may_be_renamed():
    table = {"Algorithm": ["a", "b"], "run": ["0", "0"], "return": ["1", "2"], "note": ["", ""]}
    observations = observations_of("f", table, (2, 3), {"group": "Algorithm", "seed": "run", "outcome": "return"})
    assert (observations.groups, observations.pair_column) == (("a", "b"), "seed")


def test_a_column_of_grid_cells_is_read_as_tasks():
    table = TWO | {"lr": ["low", "low"]}
    assert observations_of("f", table, (2, 3), {"cell": "lr"}).tasks == ("low",)
    assert observations_of("f", TWO | {"group_id": ["x", "y"]}, (2, 3), {"group": "group_id"}).groups == ("x", "y")
    with pytest.raises(UsageError, match="column 'task' is already set to 'lr'"):
        observations_of("f", table | {"other": ["p", "q"]}, (2, 3), {"task": "lr", "cell": "other"})


def test_float_seeds_are_read_as_integers():
    observations = observations_of(
        "f", {"group": ["a"] * 3, "seed": [10.0, 9.0, 2.0], "outcome": [1.0, 2.0, 3.0]}, range(3)
    )
    assert observations.replicates == ("2", "9", "10")
    named_observations = observations_of("f", {"group": ["a"] * 2, "pair": ["z", "b"], "outcome": [1.0, 2.0]}, range(2))
    assert named_observations.replicates == ("b", "z")


def test_the_bootstrap_seed_does_not_depend_on_the_order_of_rows():
    table = rows([1.0, 2.0], [3.0, 4.0])
    assert outcomes(table).rng_seed == outcomes(table[::-1]).rng_seed
    assert outcomes(table).rng_seed != outcomes([table[0] | {"outcome": 1.5}, *table[1:]]).rng_seed


def test_a_column_named_run_does_not_pair_runs():
    named_table = {"group": ["a", "b"], "run": ["0", "0"], "outcome": ["1", "2"], "order": ["-1", ""]}
    observations = observations_of("f", named_table, (2, 3))
    assert observations.pair_column == ""
    assert [(row.run, row.order) for row in observations.rows] == [("0", -1), ("0", None)]
    observations_with_seeds = observations_of("f", named_table | {"seed": ["4", "5"]}, (2, 3))
    assert (observations_with_seeds.pair_column, observations_with_seeds.replicates) == ("seed", ("4", "5"))
    seeds = observations_of("f", named_table, (2, 3), {"seed": "run"})
    assert (seeds.pair_column, seeds.rows[0].run) == ("seed", "")


@pytest.mark.parametrize(
    ("data", "names", "missing_columns"),
    [
        ({"seed": [7, 3], "new": ["x", "y"], "old": [3.0, 4.0]}, None, "'group' or 'outcome'"),
        ({"group": [0, 1], "seed": [3, 3], "score": [1.0, 2.0]}, None, "'outcome'"),
        ({"arm": [0, 1], "rng": [3, 3], "score": [1.0, 2.0]}, {"group": "arm"}, "'outcome' or 'seed'"),
    ],
)
def test_a_frame_with_a_known_column_is_not_read_as_a_column_per_group(data, names, missing_columns):
    with pytest.raises(UsageError, match=f"has no column {missing_columns}"):
        read_data(pd.DataFrame(data), names)


@pytest.mark.parametrize(
    ("true_value", "false_value"),
    [
        ("True", "False"),
        ("TRUE", "false"),
        (True, False),
        (np.True_, np.False_),
    ],
)
def test_booleans_in_a_table_are_read_as_0_and_1(true_value, false_value):
    observations = observations_of("f", TWO | {"outcome": [true_value, false_value]}, (2, 3))
    assert [row.value for row in observations.rows] == [1.0, 0.0]
