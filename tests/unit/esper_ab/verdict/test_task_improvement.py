"""The probability of improvement over tasks, against scipy's U per task and plain resampling."""

import numpy as np
import pytest
from scipy import stats

from esper_ab.contracts.measures import Measure
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import Scale
from esper_ab.verdict.task_improvement import task_improvements

TASKS = ("reach", "push", "open")


def make_scale(task, better_direction="higher"):
    measure = Measure(name="outcome", label="outcome", better=better_direction)
    return Scale(task=task, outcome=measure, margin=1.0)


def draw_outcomes(better_direction="higher"):
    rng = np.random.default_rng(5)
    sign = 1.0 if better_direction == "higher" else -1.0
    runs = {
        (group, task): np.round(rng.normal(shift + index, 1.0, 12), 1)
        for index, task in enumerate(TASKS)
        for group, shift in (("new", 0.8), ("old", 0.0))
    }
    rows = tuple(
        Observation(group=group, task=task, replicate=str(seed), value=sign * float(value))
        for (group, task), values in runs.items()
        for seed, value in enumerate(values)
    )
    return runs, Observations(source="runs.csv", pair_column="seed", rows=Runs.of(rows))


@pytest.mark.parametrize("better_direction", ["higher", "lower"])
def test_the_probability_of_improvement_is_averaged_over_tasks(better_direction):
    runs, observations = draw_outcomes(better_direction)
    compared_groups = [("new", "old")] * 4  # in each task, and in their mean
    (improvement,) = task_improvements(
        observations, [make_scale(task, better_direction) for task in TASKS], compared_groups, 3
    )
    task_probabilities = [stats.mannwhitneyu(runs["new", task], runs["old", task]).statistic / 144 for task in TASKS]
    assert (improvement.a, improvement.b, improvement.tasks, improvement.runs) == ("new", "old", 3, 12)
    assert improvement.probability == pytest.approx(np.mean(task_probabilities))
    rng = np.random.default_rng(6)
    resampled_means = []
    for _ in range(4_000):
        resample = []
        for task in TASKS:
            a, b = (runs[group, task][rng.integers(0, 12, 12)] for group in ("new", "old"))
            resample.append(np.mean((a[:, None] > b) + 0.5 * (a[:, None] == b)))
        resampled_means.append(np.mean(resample))
    low, high = np.quantile(resampled_means, (0.025, 0.975))
    assert (improvement.low, improvement.high) == pytest.approx((low, high), abs=0.01)


def test_improvement_over_tasks_needs_several_tasks_with_runs():
    _, observations = draw_outcomes()
    assert task_improvements(observations, [make_scale("reach")], [("new", "old")], 3) == ()
    assert task_improvements(observations, [make_scale("reach"), make_scale("lift")], [("new", "old")], 3) == ()
