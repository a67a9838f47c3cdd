import pandas as pd
import pytest
from support.elsewhere import outcomes, rows

from esper_ab.contracts.errors import UsageError
from esper_ab.external.table import observations_of
from esper_ab.verdict.scale import MEAN


def _refused(**columns):
    with pytest.raises(UsageError) as raised:
        observations_of("f.csv", columns, range(2, 2 + len(next(iter(columns.values())))))
    message = str(raised.value)
    assert "\n" not in message
    return message


TWO = {"group": ["a", "b"], "seed": ["0", "0"], "outcome": ["1", "2"]}


@pytest.mark.parametrize(("change", "said"), [
    ({"outcome": ["1", "x"]}, "row 3, column outcome: 'x' is no number"),
    ({"outcome": ["1", "inf"]}, "row 3, column outcome: inf is not finite"),
    ({"outcome": ["1", "-1e200"]}, "row 3, column outcome: -1e200 is beyond 1e+40"),
    ({"outcome": ["1", "1,5"]}, "row 3, column outcome: '1,5' is no number"),
    ({"group": ["a", ""]}, "row 3, column group: it is empty"),
    ({"group": ["a", "b\x1b[2J"]}, "row 3, column group"),
    ({"group": ["a", "b" * 61]}, "row 3, column group"),
    ({"seed": ["", "0"]}, "row 2, column seed: it is empty"),
    ({"group": ["a", "a"]}, "row 3, column seed: group a has seed 0 in row 2 already"),
    ({"task": ["t", ""]}, "row 3, column task: it is empty"),
    ({"task": ["t", MEAN]}, "row 3, column task"),
    ({"pair": ["0", "0"]}, "has the columns seed and pair"),
    ({"order": ["1", "2.5"]}, "row 3, column order: '2.5' is no whole number"),
    ({"run": ["7", ""]}, "row 3, column run: it is empty"),
    ({"group": ["a", "a"], "seed": ["0", "1"], "run": ["7", "7"]}, "row 3, column run: group a has run 7 in row 2 "
     "already; one row per item, as a prompt or a scene, is not judged yet: it is evidence about these two checkpoints "
     "only"),
])  # fmt: skip
def test_what_is_wrong_is_told_with_its_row_and_column(change, said):
    assert said in _refused(**TWO | change)


@pytest.mark.parametrize("column", ["group", "seed", "outcome"])
def test_a_missing_column_is_named_with_those_that_are_there(column):
    said = _refused(**{name: cells for name, cells in TWO.items() if name != column} | {"score": ["1", "2"]})
    assert column in said
    assert "score" in said
    assert "--columns" in said


@pytest.mark.parametrize("cell", ["", " ", "nan", "NaN", "NA", "<NA>", "null", None, float("nan"), pd.NA])
def test_a_run_without_an_outcome_is_lost(cell):
    found = observations_of("f", TWO | {"outcome": ["1", cell]}, (2, 3))
    assert [row.value for row in found.rows] == [1.0, None]


@pytest.mark.parametrize("cell", ["", "nan", "NA", "<NA>", "None", None, float("nan"), pd.NA])
def test_a_run_without_a_cluster_shares_nothing(cell):
    found = observations_of("f", TWO | {"cluster": [cell, "one"]}, (2, 3))
    assert [row.cluster for row in found.rows] == ["", "one"]


@pytest.mark.parametrize("column", ["group", "seed"])
def test_a_name_that_a_data_frame_lacks_is_empty_and_none_is_a_name(column):
    assert "row 2, column" in _refused(**TWO | {column: [pd.NA, "b"]})
    assert observations_of("f", TWO | {column: ["none", "b"]}, (2, 3)).rows[0].value == 1.0


def test_columns_may_have_other_names():
    theirs = {"Algorithm": ["a", "b"], "run": ["0", "0"], "return": ["1", "2"], "note": ["", ""]}
    found = observations_of("f", theirs, (2, 3), {"group": "Algorithm", "seed": "run", "outcome": "return"})
    assert (found.groups, found.pair_column) == (("a", "b"), "seed")
    with pytest.raises(UsageError, match="no column 'runs'"):
        observations_of("f", theirs, (2, 3), {"group": "Algorithm", "seed": "runs", "outcome": "return"})
    with pytest.raises(UsageError, match="the columns are group"):
        observations_of("f", theirs, (2, 3), {"grop": "Algorithm"})


def test_a_cell_is_a_task_whatever_its_column_is_called():
    theirs = TWO | {"lr": ["low", "low"]}
    assert observations_of("f", theirs, (2, 3), {"cell": "lr"}).tasks == ("low",)
    assert observations_of("f", TWO | {"group_id": ["x", "y"]}, (2, 3), {"group": "group_id"}).groups == ("x", "y")
    with pytest.raises(UsageError, match="task is lr already"):
        observations_of("f", theirs | {"other": ["p", "q"]}, (2, 3), {"task": "lr", "cell": "other"})


@pytest.mark.parametrize("more", [{"task": ["t", "t"], "cell": ["u", "u"]}, {"Group": ["a", "b"]}])
def test_two_columns_of_one_meaning_are_refused_and_one_is_named(more):
    assert "which mean the same: --columns" in _refused(**TWO | more)
    *_, last = more
    ours = "task" if "task" in more else "group"
    assert observations_of("f", TWO | more, (2, 3), {ours: last}).rows[0].row == 2


def test_seeds_stand_in_their_order_and_a_data_frames_floats_are_integers():
    found = observations_of("f", {"group": ["a"] * 3, "seed": [10.0, 9.0, 2.0], "outcome": [1.0, 2.0, 3.0]}, range(3))
    assert found.replicates == ("2", "9", "10")
    named = observations_of("f", {"group": ["a"] * 2, "pair": ["z", "b"], "outcome": [1.0, 2.0]}, range(2))
    assert named.replicates == ("z", "b")


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
