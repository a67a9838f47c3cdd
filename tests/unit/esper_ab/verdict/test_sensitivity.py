"""A collapse that no run showed: how often it may strike, and whether the claim survives one."""

import numpy as np
import pytest
from support.comparing import compared, design, pairs_of

from esper_ab.stats.correlation import drift
from esper_ab.verdict.sensitivity import drifting
from esper_ab.verdict.vocabulary import Verdict

NOISE = np.random.default_rng(5).standard_normal(20)


def of(shift, n=20, depth=0.0, **changes):
    """n pairs of a that is better by `shift`; one run of b ends `depth` lower, and one of a with it."""
    b = 70.0 + 0.0 * NOISE[:n]
    b[3] -= depth
    return compared(design(n, **changes), pairs_of(b + shift + NOISE[:n], b))


@pytest.mark.parametrize(("n", "rate"), [(6, 0.393), (8, 0.312), (20, 0.139)])
def test_the_rate_is_what_n_runs_miss_with_a_chance_of_five_percent(n, rate):
    result = of(20.0, n)
    assert result.unseen.rate == pytest.approx(rate, abs=5e-4)
    assert (1.0 - result.unseen.rate) ** n == pytest.approx(0.05)
    assert any(f"up to {100 * rate:.0f} % of a group's runs" in caveat for caveat in result.caveats)


def test_a_large_effect_survives_a_collapse_and_a_small_one_does_not():
    sure, close = of(20.0, depth=5.0), of(0.8, depth=20.0, margin=0.5)
    assert (sure.verdict, sure.unseen.survives) == (Verdict.BETTER, True)
    assert (close.verdict, close.unseen.survives) == (Verdict.BETTER, False)
    assert close.unseen.worst == pytest.approx(min(min(pair.a, pair.b) for pair in close.pairs))
    assert any("The verdict would not survive one more pair" in caveat for caveat in close.caveats)


def test_it_is_the_same_from_either_side_and_asked_in_both_directions_of_an_equivalence():
    a, b = 70.0 + 0.3 * NOISE, 70.0 + 0.0 * NOISE
    there, back = compared(design(20), pairs_of(a, b)), compared(design(20), pairs_of(b, a))
    assert (there.verdict, back.verdict) == (Verdict.EQUIVALENT, Verdict.EQUIVALENT)
    assert there.unseen == back.unseen
    a[4], b[4] = 40.0, 40.0  # both collapsed once, so that no difference shows
    fragile = compared(design(20), pairs_of(a, b))
    assert (fragile.verdict, fragile.unseen.survives) == (Verdict.EQUIVALENT, False)


def test_where_nothing_is_claimed_nothing_was_leant_on():
    assert of(0.4, margin=0.5).unseen is None
    assert compared(design(20), pairs_of([70.0] * 3, [69.0, 68.0, 71.0])).unseen is None


# Drift: it is said from the level on that all comparisons and both tests share.


@pytest.mark.parametrize(("slope", "wave"), [(0.06, 0.0), (0.0, 2.0), (0.0, 0.0)])
def test_each_test_has_its_share_of_one_in_a_hundred(slope, wave):
    at = np.arange(30)
    noise = np.random.default_rng(3).standard_normal(30)
    pairs = pairs_of(70.0 + slope * at + wave * np.sin(at / 3.0) + noise, np.full(30, 70.0))
    seen = drift(pairs, 1)
    for comparisons in range(1, 30):
        rule = design(20, comparisons)
        said = " ".join(one.sentence for one in drifting(rule, rule.comparisons[0], pairs, "Repeat it."))
        assert ("a trend of" in said) == (seen.slope_p <= 0.01 / (2 * comparisons))
        assert ("an autocorrelation of" in said) == (seen.autocorrelation_p <= 0.01 / (2 * comparisons))
