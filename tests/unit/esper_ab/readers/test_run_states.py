"""A tracker's table of runs: the last value of a crashed run is not used as its outcome."""

import numpy as np
import pytest
from support.outcomes.item_tables import item_columns

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.external_table import observations_of
from esper_ab.readers.scales import scales_of
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.levels import at_level

ROWS = 16


def read(states, name="State", outcomes=None, names=None):
    columns = {
        "Name": [f"run{row}" for row in range(ROWS)],
        name: states,
        "algo": ["base"] * 8 + ["tuned"] * 8,
        "seed": [*range(8)] * 2,
        "return": outcomes or [100.0 + row % 3 for row in range(8)] + [130.0 + row % 5 for row in range(8)],
    }
    names = {"group": "algo", "outcome": "return", **(names or {})}
    return observations_of("wandb.csv", columns, range(2, 2 + ROWS), names)


@pytest.mark.parametrize("name", ["State", "status", " STATE "])
def test_crashed_runs_in_a_table_are_lost(name):
    observations = read(["finished"] * 14 + ["crashed", "Failed"], name)
    assert [row.value is None for row in observations.rows] == [False] * 14 + [True] * 2
    assert observations.notes == (
        f"Lost, because the column {name} says that they did not finish, whatever outcome they reached: 2 runs of "
        "tuned.",
    )


def test_a_group_that_lost_runs_is_not_called_better():
    observations = read(["finished"] * 14 + ["crashed", "killed"])
    answer = explore(observations, scales_of(("",), 2.0), Rule())
    (comparison,) = answer.comparisons
    assert (str(comparison.verdict), str(comparison.unaudited)) == ("INCONCLUSIVE", "WORSE")
    assert observations.notes[0] in answer.notes


def test_crashed_runs_without_an_outcome_cause_no_note():
    """Their empty cells already say that they are lost."""
    observations = read(["finished"] * 15 + ["crashed"], outcomes=[100.0] * 15 + [""])
    assert (observations.rows[-1].value, observations.notes) == (None, ())


@pytest.mark.parametrize(
    ("states", "name", "names"),
    [
        (["finished"] * ROWS, "State", {}),
        (["finished"] * 15 + ["Ohio"], "State", {}),  # another kind of state
        (["finished"] * 15 + [""], "State", {}),
        (["crashed"] * ROWS, "ended", {}),
        (["failed"] * 8 + ["done"] * 8, "status", {"group": "status"}),  # it names the groups
    ],
)
def test_runs_in_unknown_states_are_not_lost(states, name, names):
    observations = read(states, name, names=names)
    assert all(row.value is not None for row in observations.rows)
    assert observations.notes == ()


def test_a_table_with_a_run_in_progress_is_refused():
    with pytest.raises(UsageError, match=r"row 5, column State: the run is running, so its outcome is not final"):
        read(["finished"] * 3 + ["Running"] + ["finished"] * 12)


def read_items(states_of_run, run_column="seed"):
    """Two groups of 6 runs with 30 questions; `states_of_run`: from group, run and question."""
    columns = item_columns(runs=6, items=30, shift=0.3, run_column=run_column)
    columns["state"] = [
        states_of_run(*cells) for cells in zip(columns["group"], columns[run_column], columns["question"], strict=True)
    ]
    return observations_of("scores.csv", columns, range(2, 2 + len(columns["state"])))


def test_a_crashed_run_has_no_scores_of_items():
    found = read_items(lambda group, run, _: "crashed" if (group, run) == ("new", 2) else "finished")
    lost = np.isnan(found.table.score).reshape(2, 6, 30)
    assert lost[0, 2].all()
    assert lost.sum() == 30
    assert found.notes == (
        "Lost, because the column state says that they did not finish, whatever outcome they reached: 1 run of new.",
    )
    assert [row.replicate for row in at_level(found, None).rows if row.value is None] == ["2"]


def test_a_state_that_varies_within_a_run_is_not_the_state_of_the_run():
    """A rollout that failed is an outcome."""
    found = read_items(lambda _group, _run, question: "failed" if question % 2 else "success")
    assert not np.isnan(found.table.score).any()
    assert found.notes == ()


def test_without_a_run_column_a_state_is_not_the_state_of_a_run():
    columns = item_columns(runs=1, items=30, run_column="")
    columns["status"] = ["failed" if group == "old" else "success" for group in columns["group"]]
    found = observations_of("scores.csv", columns, range(2, 62))
    assert not np.isnan(found.table.score).any()


def test_a_table_of_items_with_a_run_in_progress_is_refused():
    with pytest.raises(UsageError, match=r"row 32, column state: the run is running, so its outcome is not final"):
        read_items(lambda group, run, _: "running" if (group, run) == ("new", 1) else "finished")
