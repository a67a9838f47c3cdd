"""Sentences on shapes: the error rate that fits the data, and what a far tail may do."""

import msgspec
import numpy as np
import pytest
from support.outcomes.compared_designs import compared, design, open_ended, pairs_of

from esper_ab.design.design import Contrast
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.shapes import look_plan, shape_caveats
from esper_ab.verdict.verdict import Verdict

WAVE = np.linspace(-0.5, 0.5, 20)
TAIL = np.log(1.0 - np.linspace(0.02, 0.995, 20)) * 2.0


def said(d, **changes):
    found = compared(design(20, **changes), pairs_of(70.0 + d, np.full(20, 70.0)))
    return found, list(shape_caveats(found))


def test_a_claim_about_symmetric_differences_has_none():
    found, sentences = said(WAVE + 3.0)
    assert (found.verdict, sentences) == (Verdict.BETTER, [])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_claim_against_which_the_differences_are_skewed_has_the_rate_of_their_shape(sign):
    found, (sentence,) = said(sign * (TAIL + 4.5), margin=0.5)
    assert found.verdict is (Verdict.BETTER if sign > 0.0 else Verdict.WORSE)
    assert sentence == (
        "If the true mean is 0, differences as skewed as these (skewness 2.1 against the claim) give a false claim in "
        "about 17 % of experiments with as many pairs, not in 5 %."
    )


def test_a_claim_along_which_the_differences_are_skewed_has_none():
    found, sentences = said(-TAIL)
    assert (found.verdict, sentences) == (Verdict.BETTER, [])


def test_one_failure_beside_a_claim_has_its_rate_and_the_means_that_it_allows():
    d = WAVE + 6.0
    d[7] = -20.0
    found, sentences = said(d)
    assert found.verdict is Verdict.BETTER
    assert sentences[0].startswith("1 of 20 pairs lies further from the others (-20.00 points against +6.01 points)")
    assert "may be 0.13 to 25 % of all, which gives a mean from +5.97 points to -0.46 points" in sentences[0]
    assert "of which 5 % fall like this give a false claim in about 36 % of experiments" in sentences[1]


def test_the_means_that_a_failure_allows_are_not_told_if_the_claim_holds_for_all_of_them():
    d = WAVE + 20.0
    d[7] = -20.0
    found, sentences = said(d)
    assert found.verdict is Verdict.BETTER
    assert not any("which gives a mean" in sentence for sentence in sentences)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_failure_beside_an_equivalence_tells_the_means_that_it_allows(sign):
    """+1.0 in 19 pairs and -19 in one: the mean may lie at -4."""
    d = np.full(20, 1.0) + 0.02 * WAVE
    d[3] = -19.0
    found, (sentence,) = said(sign * d)
    assert found.verdict is Verdict.EQUIVALENT
    assert sentence.endswith("+0.98 points to -3.97 points." if sign > 0.0 else "-0.98 points to +3.97 points.")


def test_a_rule_counts_the_tasks_and_the_groups():
    contrasts = tuple(
        Contrast(a=a, b=b, task=task) for task in ("one", "two", "three", MEAN) for a, b in (("x", "y"), ("x", "z"))
    )
    many = msgspec.structs.replace(design(10), comparisons=contrasts)
    assert look_plan(many, 9) == look_plan(design(10), 9).__class__(looks="several looks", first=6, comparisons=6)
    assert (look_plan(open_ended(), 9).looks, look_plan(design(20), 19).first) == ("after every pair", 19)


def test_nothing_is_said_where_nothing_is_claimed():
    found, sentences = said(5.0 * TAIL + 15.0)
    assert (found.verdict, sentences) == (Verdict.INCONCLUSIVE, [])
