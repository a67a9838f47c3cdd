"""scripts/validate_statistics in small: the generator is what it claims, the simulation is the package's procedure."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats
from simulation import agreement, laws, naive, procedure, results, rules, sentences, tasks
from simulation.laws import Size
from support.comparing import compared, design, pairs_of

from esper_ab.stats.anytime_t import log_evidence
from esper_ab.verdict.vocabulary import Verdict

RHOS = (0.0, 0.3, 0.6)
EQUAL_LAWS = [law for law in laws.LAWS if law.lanes == "none"]


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("law", EQUAL_LAWS, ids=lambda law: law.name)
def test_outcomes_have_the_moments_and_the_correlation_that_are_claimed(law, rho):
    a, b = laws.outcomes(law, rho, Size(4_000, 10), np.random.default_rng(1)).swapaxes(0, 1).reshape(2, -1)
    spread = math.hypot(laws.OUTCOME_SD, laws.DEPTH * math.sqrt(0.15 * 0.85)) if law.collapsing == "all" else 3.52
    level = 69.43 - (0.15 * laws.DEPTH if law.collapsing == "all" else 0.0)
    assert (a.mean(), b.mean()) == pytest.approx((level, level), abs=0.15)
    assert (a.std(), b.std()) == pytest.approx((spread, spread * (2 if law.twice else 1)), rel=0.02)
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(rho, abs=0.02)
    if law.skewed:  # -2 of the run effect, diluted by the noise
        assert stats.skew(a) == pytest.approx(-2.0 * (laws.RUN_SD / laws.OUTCOME_SD) ** 3, abs=0.15)


@pytest.mark.parametrize("law", laws.EVERY, ids=lambda law: law.name)
def test_outcomes_have_the_law_of_the_mean_of_the_last_tenth_of_curves(law):
    rng = np.random.default_rng(2)
    drawn = laws.outcomes(law, 0.3, Size(4_000, 2), rng)
    taken = laws.curves(law, 0.3, Size(4_000, 2), rng, laws.TAIL).mean(axis=-1)
    for group in (0, 1):
        assert stats.ks_2samp(drawn[:, group].ravel(), taken[:, group].ravel()).pvalue > 1e-3
    assert stats.ks_2samp((drawn[:, 0] - drawn[:, 1]).ravel(), (taken[:, 0] - taken[:, 1]).ravel()).pvalue > 1e-3


def test_curves_rise_as_claimed_and_are_autocorrelated():
    curves = laws.curves(laws.law_named("normal"), 0.0, Size(3_000, 2), np.random.default_rng(3))
    assert curves.shape == (3_000, 2, 2, 100)
    mean = curves.mean(axis=(0, 1, 2))
    assert (mean[0], mean[-1]) == pytest.approx((45.0, 69.5), abs=0.2)
    within = curves - laws.TREND - (curves - laws.TREND).mean(axis=-1, keepdims=True)
    step = (within[..., 1:] * within[..., :-1]).mean() / (within**2).mean()
    assert step == pytest.approx(0.8, abs=0.05)
    assert (curves - laws.TREND).std() == pytest.approx(math.hypot(3.0, 2.5), rel=0.02)


def test_the_device_gives_two_points_to_whoever_stands_in_position_one():
    law, rng = laws.law_named("device"), np.random.default_rng(4)
    a, b = laws.outcomes(law, 0.6, Size(20_000, 4), rng).mean(axis=0)
    assert b - a == pytest.approx([2.0, -2.0, 2.0, -2.0], abs=0.15)
    a, b = laws.outcomes(laws.FIXED_LANES, 0.6, Size(20_000, 4), rng).mean(axis=0)
    assert b - a == pytest.approx([2.0] * 4, abs=0.15)


@pytest.mark.parametrize("rule", rules.EVERY_RULE, ids=lambda rule: rule.name)
def test_the_simulated_procedure_is_the_package_s(rule):
    decisions = agreement.check(rule, 50 if rule.groups < 4 else 12, 5)
    assert decisions["open"] > 0
    assert decisions["crossed"] > 0 or rule.groups > 6


def test_a_procedure_that_differs_is_noticed():
    rule = rules.Rule("10 pairs", 10)
    values = laws.outcomes(laws.LAWS[0], 0.0, Size(20, 10), np.random.default_rng(6))
    values[:, 0] += 4.0
    agreement.compare(rule, values)
    with pytest.raises(AssertionError, match="by esper_ab"):
        agreement._near("here", (0.0, 1.0), (0.0, 1.0 + 1e-7))
    with pytest.raises(AssertionError, match="'crossed' simulated, 'open' by esper_ab"):
        agreement._same("here", "crossed", "open")


def test_the_anytime_bound_is_where_the_evidence_suffices():
    for df, information, evidence in ((5.0, 6.0, 20.0), (38.0, 40.0, 100.0), (8.0, 9.6, 60.0)):
        half = procedure.anytime_half(evidence, df, information)
        assert log_evidence(half, int(df), information) == pytest.approx(math.log(evidence), abs=1e-9)
    assert procedure.anytime_half(20.0, 2.0, 3.0) == math.inf


def test_naive_rules_are_those_of_scipy():
    rng = np.random.default_rng(7)
    a, b = laws.curves(laws.LAWS[0], 0.3, Size(60, 6), rng, laws.TAIL).swapaxes(0, 1)
    pooled = stats.mannwhitneyu(a.reshape(60, -1), b.reshape(60, -1), axis=1, method="asymptotic").pvalue <= 0.05
    assert (naive.pooled_mann_whitney(a, b, rng) == pooled).all()
    assert 0 < pooled.sum() < 60
    paired = stats.ttest_rel(a.mean(axis=2), b.mean(axis=2), axis=1).pvalue <= 0.05
    assert (naive.paired_t(a, b, rng) == paired).all()
    assert (naive.peeking(a, b, rng) >= naive.paired_t(a, b, rng)).all()
    assert naive.last_episode(a, b, rng).all()
    for claim in (naive.bootstrap, naive.paired_bootstrap, naive.welch):
        assert claim(a + 20.0, b, rng).all()
        assert claim(a, b, rng).mean() < 0.4


def test_a_piece_of_work_is_the_same_again_and_others_differ():
    piece = tasks.Task("pairs", "collapses", 0.3, 0, 200, 11)
    first = tasks.work(piece)
    assert tasks.work(piece) == first
    assert tasks.work(tasks.Task("pairs", "collapses", 0.3, 1, 200, 11)) != first
    total: tasks.Tally = {}
    tasks.add(total, first)
    tasks.add(total, first)
    assert all(counts["experiments"] == 400 for counts in total.values())


@pytest.mark.parametrize("law", laws.SHAPES, ids=lambda law: law.name)
def test_outcomes_of_other_shapes_have_about_the_spread_and_no_difference(law):
    a, b = laws.outcomes(law, 0.6, Size(4_000, 10), np.random.default_rng(9)).swapaxes(0, 1).reshape(2, -1)
    low, high = {"t3": (0.7, 1.5), "ceiling": (0.6, 0.9)}.get(law.shape, (0.9, 1.1))
    assert low * laws.OUTCOME_SD < a.std() < high * laws.OUTCOME_SD
    assert a.mean() - b.mean() == pytest.approx(0.0, abs=0.15)
    if law.shape == "ties":
        assert np.allclose(a * 3.89, np.round(a * 3.89))


def test_made_up_comparisons_of_every_verdict_contradict_themselves_nowhere():
    seen, broken = sentences.check(12, 0)
    assert broken == []
    assert {str(verdict) for verdict in Verdict} - set(seen) <= {"WORSE, BELOW MARGIN"}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 5))
def test_two_thousand_contradict_themselves_nowhere(number):
    assert sentences.check(12, number)[1] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"low": -0.1}, "BETTER beside"),
        ({"verdict": Verdict.WORSE}, "WORSE beside"),
        ({"verdict": Verdict.EQUIVALENT}, "EQUIVALENT within"),
        ({"verdict": Verdict.NO_INFERENCE}, "NO INFERENCE with 6 pairs"),
        ({"estimate": 9.0}, "outside of its interval"),
    ],
)
def test_a_contradiction_is_noticed(change, said):
    found = compared(design(6), pairs_of([75.0, 76.2, 74.1, 75.7, 76.0, 74.4], [70.1, 72.0, 70.3, 70.0, 71.7, 70.4]))
    assert list(sentences.contradictions(found)) == []
    assert any(said in wrong for wrong in sentences.contradictions(dataclasses.replace(found, **change)))


def limit(wrong, experiments=100_000, law="normal"):
    counts = {"experiments": float(experiments), "wrong": float(wrong), "missed 0": 0.0}
    row = results.Row("pairs", "10 pairs", law, 0.0, tasks.NO_STOP, counts)
    return next(check for check in results.checks([row]) if check.kind == "error")


def test_limits_are_judged_by_the_ends_of_the_exact_interval():
    row = limit(5_000).row
    exact = stats.binomtest(5_000, 100_000).proportion_ci(0.95, method="exact")
    assert row.limits("wrong") == pytest.approx((exact.low, exact.high), rel=1e-9)
    assert not limit(5_400).broken
    assert limit(5_500).broken  # up to 5.64 %
    assert not limit(5_500).surely_broken
    assert limit(5_900).surely_broken
    assert "false claims 5.50 % [5.36, 5.64], limit 5.6 %" in limit(5_500).sentence
