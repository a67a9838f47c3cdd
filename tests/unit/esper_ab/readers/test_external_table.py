import numpy as np
import pandas as pd
import pytest
from support.outcomes.csv_outcomes import outcomes, rows

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.external_table import observations_of
from esper_ab.readers.python_data import read_data

TWO = {"group": ["a", "b"], "seed": ["0", "0"], "outcome": ["1", "2"]}


@pytest.mark.parametrize("cell", ["", " ", "nan", "NaN", "NA", "<NA>", "null", "None", None, float("nan"), pd.NA])
def test_a_run_without_an_outcome_is_lost_and_one_without_a_cluster_shares_nothing(cell):
    found = observations_of("f", TWO | {"outcome": ["1", cell], "cluster": [cell, "one"]}, (2, 3))
    assert [(row.value, row.cluster) for row in found.rows] == [(1.0, ""), (None, "one")]


@pytest.mark.parametrize("column", ["group", "seed"])
def test_a_name_that_a_data_frame_lacks_is_empty_and_none_is_a_name(column):
    with pytest.raises(UsageError, match=f"row 2, column {column}"):
        observations_of("f", TWO | {column: [pd.NA, "b"]}, (2, 3))
    assert observations_of("f", TWO | {column: ["none", "b"]}, (2, 3)).rows[0].value == 1.0


def test_columns_may_have_other_names():
    theirs = {"Algorithm": ["a", "b"], "run": ["0", "0"], "return": ["1", "2"], "note": ["", ""]}
    found = observations_of("f", theirs, (2, 3), {"group": "Algorithm", "seed": "run", "outcome": "return"})
    assert (found.groups, found.pair_column) == (("a", "b"), "seed")


def test_a_cell_is_a_task_whatever_its_column_is_called():
    theirs = TWO | {"lr": ["low", "low"]}
    assert observations_of("f", theirs, (2, 3), {"cell": "lr"}).tasks == ("low",)
    assert observations_of("f", TWO | {"group_id": ["x", "y"]}, (2, 3), {"group": "group_id"}).groups == ("x", "y")
    with pytest.raises(UsageError, match="column 'task' is already set to 'lr'"):
        observations_of("f", theirs | {"other": ["p", "q"]}, (2, 3), {"task": "lr", "cell": "other"})


def test_seeds_stand_in_their_order_and_a_data_frames_floats_are_integers():
    found = observations_of("f", {"group": ["a"] * 3, "seed": [10.0, 9.0, 2.0], "outcome": [1.0, 2.0, 3.0]}, range(3))
    assert found.replicates == ("2", "9", "10")
    named = observations_of("f", {"group": ["a"] * 2, "pair": ["z", "b"], "outcome": [1.0, 2.0]}, range(2))
    assert named.replicates == ("b", "z")


def test_the_bootstraps_seed_knows_the_outcomes_and_not_their_order():
    found = rows([1.0, 2.0], [3.0, 4.0])
    assert outcomes(found).rng_seed == outcomes(found[::-1]).rng_seed
    assert outcomes(found).rng_seed != outcomes([found[0] | {"outcome": 1.5}, *found[1:]]).rng_seed


def test_a_run_has_a_name_and_an_order_and_pairs_nothing():
    named = {"group": ["a", "b"], "run": ["0", "0"], "outcome": ["1", "2"], "order": ["-1", ""]}
    found = observations_of("f", named, (2, 3))
    assert found.pair_column == ""
    assert [(row.run, row.order) for row in found.rows] == [("0", -1), ("0", None)]
    both = observations_of("f", named | {"seed": ["4", "5"]}, (2, 3))
    assert (both.pair_column, both.replicates) == ("seed", ("4", "5"))
    seeds = observations_of("f", named, (2, 3), {"seed": "run"})
    assert (seeds.pair_column, seeds.rows[0].run) == ("seed", "")


@pytest.mark.parametrize(
    ("data", "names", "lacks"),
    [
        ({"seed": [7, 3], "new": ["x", "y"], "old": [3.0, 4.0]}, None, "'group' or 'outcome'"),
        ({"group": [0, 1], "seed": [3, 3], "score": [1.0, 2.0]}, None, "'outcome'"),
        ({"arm": [0, 1], "rng": [3, 3], "score": [1.0, 2.0]}, {"group": "arm"}, "'outcome' or 'seed'"),
    ],
)
def test_a_frame_with_columns_of_ours_is_no_table_of_groups(data, names, lacks):
    with pytest.raises(UsageError, match=f"has no column {lacks}"):
        read_data(pd.DataFrame(data), names)


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("True", "False"),
        ("TRUE", "false"),
        (True, False),
        (np.True_, np.False_),
    ],
)
def test_booleans_are_0_and_1(true, false):
    found = observations_of("f", TWO | {"outcome": [true, false]}, (2, 3))
    assert [row.value for row in found.rows] == [1.0, 0.0]
