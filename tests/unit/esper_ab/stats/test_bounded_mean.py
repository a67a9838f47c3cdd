"""Evidence on a bounded mean: its formula, its interval, and its chance of a large value if the mean is 0."""

import math

import numpy as np
import pytest

from esper_ab.stats.bounded_mean import PARTS, STAKES, interval, log_evidence

NORMAL = 2.0 + np.random.default_rng(5).standard_normal(30)


def test_the_evidence_is_the_sum_of_the_capitals_of_all_stakes():
    differences = np.array([1.0, -2.0, 4.0])
    capitals = [
        part * math.prod(1.0 + stake * d / 8.0 for d in differences) for stake, part in zip(STAKES, PARTS, strict=True)
    ]
    assert math.exp(log_evidence(differences, 8.0)) == pytest.approx(sum(capitals))
    assert sum(PARTS) == pytest.approx(1.0)


def test_the_evidence_against_a_mean_is_that_of_differences_moved_by_it():
    assert log_evidence(NORMAL, 10.0, 1.5) == pytest.approx(float(log_evidence(NORMAL - 1.5, 11.5)))


def test_the_evidence_of_several_samples_is_that_of_each():
    samples = np.stack([NORMAL, -NORMAL])
    assert log_evidence(samples, 10.0) == pytest.approx([float(log_evidence(sample, 10.0)) for sample in samples])


@pytest.mark.parametrize("evidence", [20.0, 40.0, 1000.0])
def test_at_the_ends_of_the_interval_the_evidence_is_what_is_required(evidence):
    low, high = interval(NORMAL, 10.0, evidence)
    assert low < NORMAL.mean() < high
    assert log_evidence(NORMAL, 10.0, low) == pytest.approx(math.log(evidence))
    assert log_evidence(-NORMAL, 10.0, -high) == pytest.approx(math.log(evidence))


def test_the_interval_of_constant_differences_counts_with_failures_that_struck_none():
    """The share of failures that have no chance of striking one of 20 pairs, and a little for the smaller stakes."""
    low, high = interval(np.full(20, 3.0), 10.0, 40.0)
    unseen_share = 1.0 - 40.0 ** (-1.0 / 20)
    assert low < (1.0 - unseen_share) * 3.0 - unseen_share * 10.0 < 3.0 < high


def test_differences_of_the_largest_size_give_an_interval_inside_the_range():
    low, high = interval(np.full(8, -10.0), 10.0, 40.0)
    assert -10.0 <= low < high < 10.0


@pytest.mark.parametrize("pairs", [6, 20])
def test_the_evidence_of_a_mean_of_0_seldom_reaches_what_is_required(pairs):
    """The worst law: as many failures of the largest size as may strike none of the pairs, and else one difference."""
    rng = np.random.default_rng(7)
    share = 1.0 - 0.05 ** (1.0 / pairs)
    hit = rng.random((20_000, pairs)) < share
    differences = np.where(hit, -1.0, share / (1.0 - share))
    reached = np.mean(log_evidence(differences, 1.0) >= math.log(20.0))
    assert reached <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / 20_000)


def test_the_evidence_is_valid_at_every_look():
    rng = np.random.default_rng(8)
    differences = rng.choice([-1.0, 1.0], (4_000, 60))
    ever = np.zeros(4_000, dtype=bool)
    for look in range(1, 61):
        ever |= log_evidence(differences[:, :look], 1.0) >= math.log(20.0)
    assert np.mean(ever) <= 0.05
