"""A staged one-sided test: its bounds, its stops, and what it does where a t-test would mislead."""

import numpy as np
import pytest

from esper_ab.stats.one_sided_looks import OneSidedTest

TEST = OneSidedTest(looks=(4, 8, 14, 20), margin=0.0, level=0.01, alpha=0.05)
ANY = OneSidedTest(looks=(4, 24, 42, 60), margin=0.0, level=0.01, alpha=0.05, size=4.0)


def drawn(pairs, mean=0.0, seed=0):
    return np.random.default_rng([seed, pairs]).normal(mean, 1.0, pairs)


def test_the_last_look_and_the_one_before_share_the_level():
    assert [TEST.bound(look) for look in TEST.looks] == [0.0, 0.0, pytest.approx(0.003), pytest.approx(0.007)]
    assert OneSidedTest(looks=(4, 6), margin=0.0, level=0.01, alpha=0.05).bound(6) == 0.01


def test_a_large_difference_crosses_at_the_first_look_that_may_claim():
    d = drawn(20, mean=3.0)
    assert [TEST.at(look, d[:look]).crossed for look in TEST.looks] == [False, False, True, True]
    assert not any(TEST.at(look, d[:look]).hopeless for look in TEST.looks)


def test_a_negative_difference_is_hopeless_at_the_first_look():
    look = TEST.at(4, drawn(4, mean=-1.0))
    assert look.hopeless
    assert not look.crossed
    assert look.low < look.mean < look.high


def test_the_margin_moves_the_claim():
    d = drawn(20, mean=3.0)
    above = OneSidedTest(looks=TEST.looks, margin=2.9, level=0.01, alpha=0.05).at(20, d)
    assert not above.crossed
    assert above.mean == pytest.approx(TEST.at(20, d).mean)
    assert above.p > TEST.at(20, d).p


def test_few_equal_differences_are_no_evidence():
    """Their t is infinite; the exact test of signs counts what they are worth."""
    test = OneSidedTest(looks=(4, 8), margin=0.0, level=0.001, alpha=0.05)
    look = test.at(8, [1.0] * 8)
    assert look.p == 0.0
    assert look.signs_p == 0.5**8
    assert not look.crossed
    assert OneSidedTest(looks=(4, 12), margin=0.0, level=0.001, alpha=0.05).at(12, [1.0] * 12).crossed


def test_counts_need_the_exact_test():
    """Seven of eight pairs differ by one success, which chance does more often than a normal t says."""
    test = OneSidedTest(looks=(4, 8), margin=0.0, level=0.001, alpha=0.05)
    look = test.at(8, [1.0] * 7 + [0.0])
    assert look.p < 0.001 < look.signs_p
    assert not look.crossed


@pytest.mark.parametrize("differences", [[], [2.0]])
def test_lost_pairs_leave_a_candidate_undecided_until_the_last_look(differences):
    assert not TEST.at(4, differences).hopeless
    assert TEST.at(20, differences).hopeless
    assert TEST.at(20, differences).p is None


def test_no_difference_is_claimed_in_at_most_the_level():
    claims = 0
    repeats = 20_000
    rng = np.random.default_rng(5)
    test = OneSidedTest(looks=(4, 6, 8), margin=0.0, level=0.02, alpha=0.05)
    for d in rng.standard_normal((repeats, 8)):
        looks = [test.at(look, d[:look]) for look in test.looks]
        first_end = next((look for look in looks if look.crossed or look.hopeless), looks[-1])
        claims += first_end.crossed
    assert claims / repeats < 0.02 + 2.0 * np.sqrt(0.02 / repeats)


def test_the_reach_of_the_t_is_found_in_four_of_five_cases():
    rng = np.random.default_rng(6)
    claims = [TEST.at(20, rng.normal(TEST.reach, 1.0, 20)).crossed for _ in range(400)]
    assert 0.7 < np.mean(claims) < 0.9


def test_below_its_reach_the_evidence_for_any_shape_shows_nothing():
    assert 0.0 < ANY.reach < 1.0
    assert ANY.at(60, np.full(60, 1.01 * ANY.reach)).crossed
    assert not ANY.at(60, np.full(60, 0.9 * ANY.reach)).crossed


def test_the_evidence_for_any_shape_may_cross_at_every_look():
    look = ANY.at(24, np.full(24, 2.0))
    assert look.crossed
    assert look.evidence > 100.0
    assert look.p is None
    assert look.low > 0.0


def test_rare_failures_do_not_mislead_the_evidence_for_any_shape():
    """Twenty small gains of a candidate that has not failed yet convince the t, and not the evidence."""
    d = 0.2 + 0.01 * drawn(24)
    assert OneSidedTest(looks=(4, 24), margin=0.0, level=0.001, alpha=0.05).at(24, d).crossed
    assert not ANY.at(24, d).crossed
    assert ANY.at(24, -d).hopeless
