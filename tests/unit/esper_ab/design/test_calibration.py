"""The statistics of an A/A calibration: textbook numbers, planted effects, error rates of bad and good rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from esper_ab.design.calibration import (
    autocorrelation,
    factor_effects,
    false_claims,
    intraclass_correlation,
    last_episodes,
    spread,
)

BOUNDS = ((6, 0.0076), (10, 0.0455))


def rng(number: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=number))


def autoregressive(runs: int, episodes: int, phi: float, run_sd: float) -> np.ndarray:
    noise = rng().normal(size=(runs, episodes))
    for episode in range(1, episodes):
        noise[:, episode] = phi * noise[:, episode - 1] + np.sqrt(1 - phi**2) * noise[:, episode]
    return 60 + np.linspace(0, 10, episodes) + noise + rng(2).normal(size=(runs, 1)) * run_sd


# --- spread, correlations -------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 100), min_size=2, max_size=20), st.floats(0.1, 10), st.floats(-50, 50))
def test_spread_goes_with_scale_and_not_with_place(values: list[float], scale: float, shift: float) -> None:
    one, other = spread(values), spread(np.array(values) * scale + shift)
    assert other.sd == pytest.approx(one.sd * scale, abs=1e-9)
    assert one.low <= one.sd <= one.high
    with pytest.raises(ValueError, match="at least two"):
        spread(values[:1])


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_autocorrelation_is_found_under_trend_and_run_effects(phi: float) -> None:
    assert autocorrelation(autoregressive(30, 400, phi, run_sd=5.0)) == pytest.approx(phi, abs=0.05)


def test_autocorrelation_of_too_little_or_of_nothing_is_not_given() -> None:
    assert autocorrelation(autoregressive(5, 3, 0.0, 1.0)) is None
    assert autocorrelation(autoregressive(1, 9, 0.0, 1.0)) is None
    assert autocorrelation(np.full((4, 6), 61.3)) is None


def test_intraclass_correlation_of_shrout_and_fleiss() -> None:
    """Shrout & Fleiss (1979), table 2: six targets, four judges; ICC(3,1) = .71, limits .34 to .95."""
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    found = intraclass_correlation(ratings)
    assert found is not None
    assert (round(found.r, 2), round(found.low, 2), round(found.high, 2)) == (0.71, 0.34, 0.95)


def test_intraclass_correlation_where_it_is_all_or_nothing() -> None:
    runs = np.array([[50.0], [60.0], [70.0]])
    everything = intraclass_correlation(np.repeat(runs, 3, axis=1))
    assert everything is not None
    assert everything.r == pytest.approx(1.0)
    assert intraclass_correlation(np.full((3, 6), 61.3)) is None
    assert intraclass_correlation(np.zeros((3, 6))) is None
    assert intraclass_correlation(runs) is None


def test_last_episodes_are_a_tenth_but_two() -> None:
    assert last_episodes(np.zeros((3, 40))).shape == (3, 4)
    assert last_episodes(np.zeros((3, 4))).shape == (3, 2)
    assert last_episodes(np.zeros((3, 1))).shape == (3, 1)


# --- device and order -----------------------------------------------------------------------------------------------


def test_one_factor_of_two_levels_is_students_t() -> None:
    values, labels = rng().normal(60, 3, size=15), ["x"] * 7 + ["y"] * 8
    (effect,) = factor_effects(values, {"device": labels, "order": ["first"] * 15})
    expected = stats.ttest_ind(values[7:], values[:7]).confidence_interval()
    (level,) = effect.levels
    assert (level.level, level.against, effect.aliased) == ("y", "x", False)
    assert (level.low, level.high) == (pytest.approx(expected.low, abs=1e-9), pytest.approx(expected.high, abs=1e-9))


def test_crossed_factors_are_told_apart() -> None:
    device, order = ["x", "x", "y", "y"] * 5, ["first", "second"] * 10
    values = [50 + 3 * (d == "y") + 1 * (o == "second") for d, o in zip(device, order, strict=True)]
    values = np.array(values) + rng().normal(size=20) * 1e-3
    by_device, by_order = factor_effects(values, {"device": device, "order": order})
    assert by_device.levels[0].mean == pytest.approx(3, abs=0.01)
    assert by_order.levels[0].mean == pytest.approx(1, abs=0.01)
    assert not by_device.aliased
    assert not by_order.aliased


def test_factors_that_go_together_are_said_to() -> None:
    device, order = ["x", "y"] * 5, ["first", "second"] * 5
    effects = factor_effects(rng().normal(size=10), {"device": device, "order": order})
    assert [effect.aliased for effect in effects] == [True, True]
    assert effects[0].levels[0].mean == pytest.approx(effects[1].levels[0].mean)


def test_without_a_run_to_spare_no_effect_is_given() -> None:
    (effect,) = factor_effects([1.0, 2.0], {"device": ["x", "y"]})
    assert effect.levels == ()


# --- error rates ----------------------------------------------------------------------------------------------------


def rates(curves: np.ndarray, per_group: int, **settings) -> dict[str, float]:
    found = false_claims(curves, curves[:, -4:].mean(axis=1), per_group, BOUNDS, rng(7), **settings)
    return {claims.rule.partition(" ")[0]: claims.rate for claims in found}


def test_bad_rules_err_often_on_correlated_curves_and_ours_does_not() -> None:
    curves = autoregressive(400, 40, 0.8, run_sd=3.0)
    found = {claims.rule: claims.rate for claims in false_claims(
        curves, curves[:, -4:].mean(axis=1), 10, BOUNDS, rng(7), splits=4000)}  # fmt: skip
    assert found["larger mean of the last episode wins"] == 1.0
    assert found["Mann-Whitney on the last 10 episodes, one run each"] > 0.5
    assert found["Mann-Whitney on the last 4 episodes of all runs, pooled"] > 0.25
    assert 0.06 < found["percentile bootstrap of the difference"] < 0.12
    assert found["this tool: paired t at its looks"] == pytest.approx(0.05, abs=0.012)


def test_runs_that_are_all_alike_make_no_rule_claim() -> None:
    assert set(rates(np.tile(np.arange(8.0), (20, 1)), 10, splits=50).values()) == {0.0}


def test_same_generator_same_rates_and_no_other_source_of_chance() -> None:
    curves = autoregressive(20, 12, 0.5, 1.0)
    claims = {"larger": 300, "Mann-Whitney": 52, "percentile": 35, "this": 17}  # of 300 splits
    assert rates(curves, 10, splits=300) == {rule: pytest.approx(n / 300) for rule, n in claims.items()}


@pytest.mark.parametrize("splits", [300, 1000, 1500])
def test_a_rule_that_always_claims_does_so_in_every_deal(splits: int) -> None:
    assert rates(autoregressive(20, 12, 0.5, 1.0), 10, splits=splits)["larger"] == 1.0


@pytest.mark.parametrize(
    ("episodes", "words"), [(10, "last episode"), (11, "last 2 episodes"), (21, "last 3 episodes")]
)
def test_the_pooled_rule_names_the_last_tenth_of_the_episodes(episodes: int, words: str) -> None:
    found = false_claims(autoregressive(10, episodes, 0.0, 1.0), np.arange(10.0), 5, BOUNDS[:0], rng(), splits=20)
    assert f"Mann-Whitney on the {words} of all runs, pooled" in [claims.rule for claims in found]


@pytest.mark.parametrize(
    ("outcomes", "rule"),
    [
        ([0.0, 0.0, 0.0, 1.0], "percentile"),  # in every deal the interval of the difference ends at 0
        ([0.0, 0.0, 1.0, 1.0], "this"),  # in every deal the differences are constant, or opposite
    ],
)
def test_no_rule_claims_a_difference_whose_interval_touches_0_or_that_does_not_vary(
    outcomes: list[float], rule: str
) -> None:
    found = false_claims(np.empty((4, 0)), outcomes, 2, ((2, 0.05),), rng(), splits=200)
    assert {claims.rule.partition(" ")[0]: claims.rate for claims in found}[rule] == 0.0


def test_a_rule_without_looks_never_claims_and_short_curves_have_no_episodes_to_pool() -> None:
    curves = autoregressive(10, 3, 0.0, 1.0)
    found = false_claims(curves, curves[:, -1], 5, (), rng(), splits=200)
    assert found[-1].rate == 0.0
    assert not any("one run each" in claims.rule for claims in found)


def test_too_few_runs_cannot_be_dealt() -> None:
    with pytest.raises(ValueError, match="two groups of 10"):
        rates(autoregressive(19, 4, 0.0, 1.0), 10)
