"""The probability of improvement over tasks, by scipy's U of each task and by plain resampling."""

import numpy as np
import pytest
from scipy import stats

from esper_ab.contracts.measures import Measure
from esper_ab.verdict.observations import Observation, Observations
from esper_ab.verdict.scale import Scale
from esper_ab.verdict.task_improvement import task_improvements

TASKS = ("reach", "push", "open")


def scale(task, better="higher"):
    measure = Measure(name="outcome", label="outcome", better=better)
    return Scale(task=task, outcome=measure, margin=1.0)


def drawn(better="higher"):
    rng = np.random.default_rng(5)
    sign = 1.0 if better == "higher" else -1.0
    runs = {
        (group, task): np.round(rng.normal(up + place, 1.0, 12), 1)
        for place, task in enumerate(TASKS)
        for group, up in (("new", 0.8), ("old", 0.0))
    }
    rows = tuple(
        Observation(group=group, task=task, replicate=str(at), value=sign * float(value))
        for (group, task), values in runs.items()
        for at, value in enumerate(values)
    )
    return runs, Observations(source="runs.csv", pair_column="seed", rows=rows)


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_it_is_the_mean_over_tasks_and_its_interval_that_of_a_stratified_bootstrap(better):
    runs, observations = drawn(better)
    compared = [("new", "old")] * 4  # in each task, and in their mean
    (found,) = task_improvements(observations, [scale(task, better) for task in TASKS], compared, 3)
    each = [stats.mannwhitneyu(runs["new", task], runs["old", task]).statistic / 144 for task in TASKS]
    assert (found.a, found.b, found.tasks, found.runs) == ("new", "old", 3, 12)
    assert found.probability == pytest.approx(np.mean(each))
    rng = np.random.default_rng(6)
    resampled = []
    for _ in range(4_000):
        one = []
        for task in TASKS:
            a, b = (runs[group, task][rng.integers(0, 12, 12)] for group in ("new", "old"))
            one.append(np.mean((a[:, None] > b) + 0.5 * (a[:, None] == b)))
        resampled.append(np.mean(one))
    low, high = np.quantile(resampled, (0.025, 0.975))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)


def test_one_task_or_a_task_without_runs_has_none():
    _, observations = drawn()
    assert task_improvements(observations, [scale("reach")], [("new", "old")], 3) == ()
    assert task_improvements(observations, [scale("reach"), scale("lift")], [("new", "old")], 3) == ()
