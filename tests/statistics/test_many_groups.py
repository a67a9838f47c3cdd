"""The set of the best groups against the simulated procedure of docs/evidence/many-groups.md."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import error_rate_groups

import esper_ab
from esper_ab.stats.mean_intervals import mean_intervals


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("law", list(error_rate_groups.LAWS))
def test_the_package_names_every_best_group_of_the_simulation(law, paired):
    """With 10 pairs no sign-flip test is needed; Welch's standard error may be larger."""
    outcomes = error_rate_groups.LAWS[law](np.random.default_rng(2), (4, 5, 10))
    outcomes += np.arange(5)[:, None]
    wins, upper_limits = error_rate_groups.better(outcomes, paired=paired)
    for number, run in enumerate(outcomes):
        groups = {f"g{place}": values.tolist() for place, values in enumerate(run)}
        best_set = esper_ab.compare_outcomes(groups, margin=1.0, paired=paired).best
        best_groups = {f"g{place}" for place in np.flatnonzero(~wins[number].any(0))}
        if paired:
            assert set(best_set.among) == best_groups
        assert set(best_set.among) >= best_groups
        leader = int(best_set.groups[0].group[1:])
        other_places = [place for place in range(5) if f"g{place}" in best_groups and place != leader]
        if paired and other_places:
            assert best_set.groups[0].behind == pytest.approx(
                max(0.0, *upper_limits[number, other_places, leader], 0.0)
            )


def test_the_intervals_of_groups_miss_as_often_as_simulated():
    outcomes = error_rate_groups.normal(np.random.default_rng(3), (400, 6, 3))
    failure_count = 0
    for run in outcomes:
        intervals = mean_intervals(run.tolist(), 0.05)
        failure_count += any(not low <= 0.0 <= high for low, high in intervals)
    assert 100.0 * failure_count / len(outcomes) == pytest.approx(error_rate_groups.intervals_fail(outcomes)["used"])
