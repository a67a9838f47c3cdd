"""Verdicts: what each kind of outcome allows to be said, and that nothing more is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.comparison import Pair, Question, compare
from esper_ab.stats.verdict import LEAST_PAIRS, Verdict


def pairs(a, b):
    return tuple(Pair(replicate=r, a=float(x), b=float(y)) for r, (x, y) in enumerate(zip(a, b, strict=True)))


def question(planned, **changes):
    return Question(a="shaped", b="simplified", planned_pairs=planned, **changes)


BETTER_A, BETTER_B = (75.0, 76.2, 74.1, 75.7, 76.0, 74.4), (70.1, 72.0, 70.3, 70.0, 71.7, 70.4)


def test_a_clear_effect_over_six_pairs_is_better_and_worse_from_the_other_side():
    there = compare(question(6), pairs(BETTER_A, BETTER_B), same_records=False)
    back = compare(question(6), pairs(BETTER_B, BETTER_A), same_records=False)
    assert (there.verdict, back.verdict) == (Verdict.BETTER, Verdict.WORSE)
    assert there.sentence.startswith("shaped is BETTER than simplified (6 pairs). shaped - simplified = +4.48 points")
    assert there.improvement.wins == 6
    assert there.sign_flip.p == 0.03125


def test_one_pair_is_no_inference():
    result = compare(question(1), pairs([90.0], [10.0]), same_records=False)
    assert result.verdict is Verdict.NO_INFERENCE
    assert "nothing follows about the groups" in result.sentence
    assert result.sign_flip is result.mann_whitney is result.hedges_g is None


def test_no_pair_is_no_inference():
    result = compare(question(6), (), same_records=False)
    assert result.verdict is Verdict.NO_INFERENCE
    assert result.difference is None
    assert "0 of 6 planned pairs" in result.caveats[0]


def test_three_pairs_say_what_three_pairs_can_show():
    result = compare(question(3), pairs([75.0, 80.0, 78.0], [70.0, 71.0, 70.7]), same_records=False)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.sentence.startswith("INCONCLUSIVE (3 pairs). shaped - simplified = +7.10 points. If the differences")
    assert "The strongest exact result possible with 3 pairs is p = 0.25" in result.sentence
    assert "this assumption cannot be checked with 3 pairs" in result.sentence
    assert "A verdict needs at least 6 pairs" in result.sentence
    assert "To detect 2 points with 80 % power" in result.sentence


@pytest.mark.parametrize(("same_records", "words"), [(True, "the same computation"), (False, "their records differ")])
def test_equal_endpoints_are_identical_without_a_test(same_records, words):
    result = compare(question(6), pairs(BETTER_A, BETTER_A), same_records=same_records)
    assert result.verdict is Verdict.IDENTICAL
    assert words in result.sentence
    assert result.sign_flip is result.pairs_needed is None
    assert result.difference.t is None


def test_one_equal_pair_is_identical_only_if_its_records_are():
    assert compare(question(1), pairs([70.0], [70.0]), same_records=True).verdict is Verdict.IDENTICAL
    assert compare(question(1), pairs([70.0], [70.0]), same_records=False).verdict is Verdict.NO_INFERENCE


def test_a_constant_difference_is_reported_and_not_divided_by():
    result = compare(question(6), pairs(np.array(BETTER_A), np.array(BETTER_A) - 2.0), same_records=False)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "without any spread there is no t" in result.sentence
    assert any("saturated" in caveat for caveat in result.caveats)


def test_looking_early_gives_no_verdict():
    result = compare(question(10), pairs(BETTER_A, BETTER_B), same_records=False)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "6 of 10 planned pairs" in result.caveats[0]


def test_several_comparisons_share_the_error():
    a, b = (75.0, 76.2, 74.1, 75.7, 74.3, 74.4), (71.6, 75.6, 71.8, 74.0, 73.3, 74.0)
    alone = compare(question(6), pairs(a, b), same_records=False)
    shared = compare(question(6, comparisons=3), pairs(a, b), same_records=False)
    assert alone.difference.p < 0.05
    assert alone.verdict is Verdict.BETTER
    assert shared.verdict is Verdict.INCONCLUSIVE
    assert shared.difference.level == pytest.approx(1 - 0.05 / 3)
    assert "98.3 % interval" in shared.sentence
    assert "shared by 3 comparisons" in shared.rule


outcomes = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=9)


@given(outcomes, st.randoms(use_true_random=False))
def test_order_of_rows_never_matters_and_no_verdict_below_six_pairs(rows, random):
    listed = list(pairs([a for a, _ in rows], [b for _, b in rows]))
    result = compare(question(len(rows)), tuple(listed), same_records=False)
    random.shuffle(listed)
    assert compare(question(len(rows)), tuple(listed), same_records=False) == result
    if len(rows) < LEAST_PAIRS:
        assert result.verdict not in (Verdict.BETTER, Verdict.WORSE)
    if result.verdict in (Verdict.BETTER, Verdict.WORSE):
        assert result.difference.p <= 0.05
        assert result.difference.low > 0 or result.difference.high < 0
    text = " ".join((result.sentence, result.rule, *result.caveats)).lower()
    assert "winner" not in text
    assert "none" not in text
    assert "nan" not in text
