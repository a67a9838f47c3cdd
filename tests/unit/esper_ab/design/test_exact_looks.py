"""Exact looks at 0/1 outcomes, against every sequence of outcomes of a small plan."""

from itertools import product
from math import sqrt

import pytest

from esper_ab.design.exact_looks import (
    Chances,
    correlated,
    exact_bounds,
    exact_looks,
    performance,
    replicates_needed,
    worst_error,
)
from esper_ab.stats.distributions import norm_sf
from esper_ab.stats.mcnemar import mcnemar_p


def pooled_p(x, y, n):
    share = (x + y) / (2 * n)
    if share in (0.0, 1.0):
        return 1.0
    return 2.0 * norm_sf(abs(x - y) / n / sqrt(share * (1.0 - share) * 2.0 / n))


def brute_force(shape, looks, bounds, chances):
    """Chances that a and b are called better, and the mean number of replicates, over all sequences of outcomes."""
    chance_of_neither = 1.0 - chances.only_a - chances.only_b - chances.both
    pairs = {(1, 0): chances.only_a, (0, 1): chances.only_b, (1, 1): chances.both, (0, 0): chance_of_neither}
    totals = [0.0, 0.0, 0.0]
    for sequence in product(pairs, repeat=looks[-1]):
        chance = 1.0
        for pair in sequence:
            chance *= pairs[pair]
        for look, bound in zip(looks, bounds, strict=True):
            x = sum(a for a, _ in sequence[:look])
            y = sum(b for _, b in sequence[:look])
            joint_successes = sum(a * b for a, b in sequence[:look])
            p = pooled_p(x, y, look) if shape == "unpaired" else mcnemar_p(x - joint_successes, y - joint_successes)
            if p <= bound:
                totals[0 if x > y else 1] += chance
                break
        totals[2] += chance * look
    return totals


@pytest.mark.parametrize("shape", ["paired", "unpaired"])
@pytest.mark.parametrize("chances", [correlated(0.9, 0.3), correlated(0.5, 0.5), correlated(0.2, 0.6)])
def test_power_and_error_equal_sums_over_all_sequences_of_outcomes(shape, chances):
    looks = (3, 5, 7)
    bounds = (0.26, 0.13, 0.3)
    result = performance(shape, looks, bounds, chances)
    assert [result.a, result.b, result.replicates] == pytest.approx(
        brute_force(shape, looks, bounds, chances), abs=1e-12
    )


def test_power_of_correlated_pairs_equals_a_sum_over_all_sequences():
    chances = correlated(0.8, 0.5, 0.4)
    result = performance("paired", (6, 7), (0.07, 0.13), chances)
    expected = brute_force("paired", (6, 7), (0.07, 0.13), chances)
    assert [result.a, result.b, result.replicates] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.01, 0.05])
@pytest.mark.parametrize("replicates", [6, 9, 15, 24, 40])
@pytest.mark.parametrize("shape", ["paired", "unpaired"])
def test_the_rate_of_false_claims_never_exceeds_alpha_for_equal_success_rates(shape, replicates, alpha):
    looks = exact_looks(replicates)
    bounds = exact_bounds(shape, looks, alpha)
    assert all(0.0 <= bound <= alpha for bound in bounds)
    assert worst_error(shape, looks, bounds) <= alpha
    for share in (0.001, 0.01, 0.03, 0.1234, 0.3456, 0.5, 0.77, 0.999):
        chances = correlated(share, share)
        if shape == "paired":
            chances = Chances(only_a=share / 2, only_b=share / 2, both=0.0)
        result = performance(shape, looks, bounds, chances)
        assert result.a == pytest.approx(result.b, abs=1e-12)
        assert result.a + result.b <= alpha


def test_exact_bounds_use_nearly_all_of_the_allowed_error():
    looks = exact_looks(40)
    bounds = exact_bounds("unpaired", looks, 0.05)
    assert worst_error("unpaired", looks, bounds) > 0.045
    assert worst_error("unpaired", looks, (*bounds[:2], 1.15 * bounds[2])) > 0.05


# Of Barnard's exact test without looks: 14, 20, 40 and 61 trials for each arm.
@pytest.mark.parametrize(
    ("shares", "trials_needed", "trials_of_one_look"),
    [((0.95, 0.5), 14, 14), ((0.9, 0.5), 21, 20), ((0.8, 0.5), 40, 40), ((0.9, 0.7), 63, 61)],
)
def test_exact_looks_need_at_most_a_tenth_more_trials_than_barnards_test(shares, trials_needed, trials_of_one_look):
    replicate_count = replicates_needed("unpaired", correlated(*shares), 0.05)
    assert replicate_count == trials_needed
    assert replicate_count <= 1.1 * trials_of_one_look
    looks = exact_looks(replicate_count)
    assert performance("unpaired", looks, exact_bounds("unpaired", looks, 0.05), correlated(*shares)).a >= 0.8


def test_exact_looks_are_at_half_three_quarters_and_the_end():
    assert exact_looks(50) == (25, 38, 50)
    assert exact_looks(10) == (6, 8, 10)
    assert exact_looks(7) == (6, 7)
    assert exact_looks(6) == (6,)


def test_an_impossible_correlation_of_success_rates_is_refused():
    assert correlated(0.8, 0.5).both == pytest.approx(0.4)
    with pytest.raises(ValueError, match=r"cannot have the correlation 0\.9"):
        correlated(0.9, 0.5, 0.9)
    assert replicates_needed("unpaired", correlated(0.5, 0.5), 0.05) is None
