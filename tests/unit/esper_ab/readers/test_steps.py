import numpy as np
import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.source_table import NOT_FINITE, Series
from esper_ab.readers.steps import RunValues, StepRule, check_rule, outcomes_at, step_column


def run(group, seed, values, steps=None, window=1, row="value"):
    ends = np.asarray(range(10, 10 * len(values) + 10, 10) if steps is None else steps, np.float64)
    series = Series("r", ends, np.asarray(values, np.float64), range(len(values)))
    return RunValues(group, f"{group}, seed {seed}", series, window, row)


def taken(runs, rule, metric):
    found = outcomes_at(runs, rule, metric)
    return found.outcomes, (found.how, *found.notes)


def test_the_outcome_of_a_run_is_its_last_value_by_default():
    outcomes, notes = taken([run("a", 0, [1, 2]), run("a", 1, [3, 4])], StepRule(), "r")
    assert outcomes == [2.0, 4.0]
    assert notes == ("The outcome of a run is its last r, at step 20.",)


def test_values_are_sorted_by_step():
    outcomes, _ = taken([run("a", 0, [1, 2, 3], steps=[30, 10, 20])], StepRule(), "r")
    assert outcomes == [1.0]


def test_the_outcome_can_be_the_mean_of_the_last_values():
    runs = [run("a", 0, [1, 2, 3, 4], window=3), run("a", 1, [5, 6], window=3)]
    outcomes, _ = taken(runs[:1], StepRule(), "r")
    assert outcomes == [3.0]
    outcomes, notes = taken(runs[:1], StepRule(mean_last=2), "r")
    assert outcomes == [3.5]
    assert notes == ("The outcome of a run is the mean of its last 2 values of r, at step 40.",)
    _, notes = taken(runs[1:], StepRule(), "r")
    assert notes[0].endswith("3 values of r, at step 20; runs with fewer, down to 2, count with all.")


def test_notes_call_training_episodes_episodes():
    runs = [run("a", 0, [1, 2, 3, 4], window=3, row="episode"), run("a", 1, [5, 6], window=3, row="episode")]
    assert outcomes_at(runs[:1], StepRule(), "r").how == (
        "The outcome of a run is the mean r of its last 3 episodes, up to step 40."
    )
    assert outcomes_at(runs, StepRule(), "r").how.endswith(
        "episodes, up to step 40; runs with fewer, down to 2, count with all."
    )
    assert outcomes_at(runs[:1], StepRule(mean_last=1), "r").how == (
        "The outcome of a run is the r of its last episode, at step 40."
    )


def test_a_run_with_a_non_finite_last_value_is_lost():
    runs = [run("a", 0, [1, 2]), run("a", 1, [1, NOT_FINITE]), run("a", 2, [NOT_FINITE, 3])]
    found = outcomes_at(runs, StepRule(), "r")
    assert found.outcomes == [2.0, None, 3.0]
    assert found.notes == ("Lost, because a value that counts is not a finite number: a, seed 1.",)


def test_only_values_used_for_the_outcome_must_be_finite():
    runs = [run("a", seed, [1, 2, NOT_FINITE, 4]) for seed in (0, 1)] + [run("a", 2, [1, 2, 3, 4])]
    assert outcomes_at(runs, StepRule(at=20), "r").outcomes == [2.0, 2.0, 2.0]
    assert outcomes_at(runs, StepRule(mean_last=3), "r").outcomes == [None, None, 3.0]


def test_steps_without_a_finite_value_in_any_run_are_ignored():
    runs = [run("a", seed, [1, NOT_FINITE, seed, NOT_FINITE]) for seed in (0, 1)]
    found = outcomes_at(runs, StepRule(), "r")
    assert (found.outcomes, found.notes) == ([0.0, 1.0], ())


def test_runs_without_any_finite_value_are_lost():
    found = outcomes_at([run("a", 0, [NOT_FINITE, NOT_FINITE])], StepRule(), "r")
    assert found.outcomes == [None]


def test_a_run_that_ends_long_before_its_group_is_lost():
    runs = [run("a", seed, range(10)) for seed in range(3)]
    runs.append(run("a", 3, [1, 2]))
    outcomes, notes = taken(runs, StepRule(), "r")
    assert outcomes == [9.0, 9.0, 9.0, None]
    assert notes[1] == "Lost, because they ended long before the others of their group: a, seed 3 at 20."


def test_a_note_names_groups_that_end_at_different_steps():
    runs = [run("a", seed, range(10)) for seed in range(2)] + [run("b", seed, range(5)) for seed in range(2)]
    outcomes, notes = taken(runs, StepRule(), "r")
    assert None not in outcomes
    assert "The groups end at different steps, a at 100 and b at 50" in notes[1]
    at_50, notes = taken(runs, StepRule(at=50), "r")
    assert at_50 == [4.0, 4.0, 4.0, 4.0]
    assert notes == ("The outcome of a run is its r at step 50.",)


def test_a_run_that_ended_before_the_requested_step_is_lost():
    runs = [run("a", 0, range(10)), run("a", 1, [1, 2])]
    outcomes, notes = taken(runs, StepRule(at=50), "r")
    assert outcomes == [4.0, None]
    assert "Lost, because they ended before step 50: a, seed 1 at 20." in notes
    with pytest.raises(UsageError, match="--at 55: a, seed 0 has no r at that step; the nearest are at 50 and 60"):
        outcomes_at(runs, StepRule(at=55), "r")


def test_a_run_without_any_value_is_lost():
    assert taken([run("a", 0, [])], StepRule(), "r")[0] == [None]


@pytest.mark.parametrize("rule", [StepRule(at=1, mean_last=2), StepRule(mean_last=0)])
def test_an_impossible_step_rule_is_refused(rule):
    with pytest.raises(UsageError):
        check_rule(rule)


@pytest.mark.parametrize(
    ("names", "column"),
    [(["a", "Step"], "Step"), (["epoch", "global_step"], "global_step"), (["time/total_timesteps"],) * 2, (["a"], "")],
)
def test_the_step_column_is_recognised_by_its_name(names, column):
    assert step_column(names) == (column if isinstance(column, str) else column[0])
