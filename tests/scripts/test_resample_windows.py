"""The tables of resampled plans by `--outcome-over`."""

import json
import math

import numpy as np
import pytest
import resample_windows
import resampled_plans

from esper_ab.stats.paired_difference import paired_difference


def cell(group, evaluations, ends, **changes):
    """Return a stored group whose curves end with these thirds, of four points each."""
    curves = [[0.0] * 8 + list(end) for end in ends]
    return {
        "task": "t",
        "setup": "12 x 1",
        "group": group,
        "seeds": list(range(len(curves))),
        "evaluations": list(map(float, evaluations)),
        "curves": curves,
    } | changes


def noise(seed, sd, runs=10):
    return np.random.default_rng(seed).normal(0.0, sd, runs)


def flat(means):
    return [[mean] * 4 for mean in means]


QUIET = cell("quiet", 10.0 + noise(1, 1.0), flat(10.0 + noise(2, 0.4)))
LOWER = cell("lower", 9.0 + noise(3, 1.0), flat(9.0 + noise(4, 0.4)))
OTHER_SIGN = cell("other", 9.0 + noise(5, 1.0), flat(11.0 + noise(6, 0.4)))


def couple(a, b):
    (found,) = resample_windows.couples_of([a, b])
    return found


def test_a_window_with_less_noise_needs_fewer_pairs_for_the_same_difference():
    here = couple(QUIET, LOWER)
    assert here.needed("last-third") < here.needed("evaluation")
    assert here.ratio("last-third") == here.needed("last-third") / here.needed("evaluation")
    assert here.chance("last-third", 6) > here.chance("evaluation", 6)


def test_a_claim_against_the_sign_of_the_evaluation_is_not_correct(monkeypatch):
    monkeypatch.setattr(resampled_plans, "SIZES", [pairs for pairs in resampled_plans.SIZES if pairs <= 20])
    here = couple(QUIET, OTHER_SIGN)
    assert not here.same_sign("last-third")
    assert here.chance("last-third", 20) < 0.05
    assert math.isinf(here.ratio("last-third"))


def test_the_blend_is_the_mean_of_evaluation_and_last_third():
    here = couple(QUIET, LOWER)
    both = (here.differences["evaluation"] + here.differences["last-third"]) / 2.0
    assert here.differences["blend"] == pytest.approx(both)


@pytest.mark.parametrize(("selection", "parts"), resample_windows.SELECTIONS.items())
def test_a_couple_differs_by_the_mean_of_the_t_statistics_of_a_selection(selection, parts):
    here = couple(QUIET, LOWER)
    t = [paired_difference(here.differences[part], np.zeros(10)).t for part in parts]
    assert here.differs(parts) == (abs(np.mean(t)) > 2.262)
    assert resample_windows.different([here], selection) == ([here] if here.differs(parts) else [])


def test_only_groups_with_the_same_seeds_make_a_couple():
    assert list(resample_windows.couples_of([QUIET, LOWER | {"seeds": list(range(1, 11))}])) == []


def test_a_calibration_with_flat_quiet_curves_recommends_the_last_third_and_a_rising_one_does_not():
    rising = cell(
        "rising", QUIET["evaluations"], [[mean - 3.0, mean - 1.0, mean + 1.0, mean + 3.0] for mean in range(10)]
    )
    assert resample_windows.recommended_share(QUIET, 1.0) > 0.8
    assert resample_windows.recommended_share(rising, 1.0) == 0.0
    assert resample_windows.recommended_share(cell("capped", [500.0] * 10, flat([500.0] * 10)), 1.0) == 0.0


def test_half_of_the_weight_lies_below_a_weighted_median():
    assert resample_windows.weighted_median([(3.0, 1.0), (1.0, 0.5), (2.0, 1.0)]) == 2.0
    assert math.isnan(resample_windows.weighted_median([]))


def test_the_tables_have_a_row_for_each_selection_and_margin():
    cells = [QUIET, LOWER]
    couples = list(resample_windows.couples_of(cells))
    assert [row.split(" | ")[1] for row in list(resample_windows.power_table(couples))[2:]] == [
        "t",
        "all",
        "evaluation needs more than 8",
    ] * 3
    assert len(list(resample_windows.budget_table(couples))) >= 3
    assert len(list(resample_windows.advice_table(cells, couples))) == 2 + 3 * len(resample_windows.MARGINS)


def test_the_page_counts_the_couples_of_the_stored_runs():
    cells = json.loads(resample_windows.STORED.read_text())["cells"]
    couples = list(resample_windows.couples_of(cells))
    lines = resample_windows.PAGE.read_text().splitlines()
    for selection in resample_windows.SELECTIONS:
        count = len(resample_windows.different(couples, selection))
        assert any(line.startswith(f"| {selection} | all | {count} |") for line in lines), selection
