"""Sentences on shapes: the error rate that fits the data, and the effect of a far tail."""

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


def compare_differences(d, **changes):
    comparison = compared(design(20, **changes), pairs_of(70.0 + d, np.full(20, 70.0)))
    return comparison, list(shape_caveats(comparison))


def test_a_claim_about_symmetric_differences_has_no_shape_caveat():
    comparison, sentences = compare_differences(WAVE + 3.0)
    assert (comparison.verdict, sentences) == (Verdict.BETTER, [])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_differences_skewed_against_the_claim_state_the_error_rate_of_their_shape(sign):
    comparison, (sentence,) = compare_differences(sign * (TAIL + 4.5), margin=0.5)
    assert comparison.verdict is (Verdict.BETTER if sign > 0.0 else Verdict.WORSE)
    assert sentence == (
        "If the true mean is 0, differences as skewed as these (skewness 2.1 against the claim) give a false claim in "
        "about 17 % of experiments with as many pairs, not in 5 %; a plan with --shape any would keep to that."
    )


def test_differences_skewed_in_favour_of_the_claim_have_no_shape_caveat():
    comparison, sentences = compare_differences(-TAIL)
    assert (comparison.verdict, sentences) == (Verdict.BETTER, [])


def test_a_claim_with_one_failed_pair_states_its_error_rate():
    d = WAVE + 6.0
    d[7] = -20.0
    comparison, sentences = compare_differences(d)
    assert comparison.verdict is Verdict.BETTER
    assert sentences[0].startswith("1 of 20 pairs lies further from the others (-20.00 points against +6.01 points)")
    assert "may be 0.13 to 25 % of all, which gives a mean from +5.97 points to -0.46 points" in sentences[0]
    assert "of which 5 % fall like this give a false claim in about 36 % of experiments" in sentences[1]


def test_possible_means_are_not_stated_if_they_all_support_the_claim():
    d = WAVE + 20.0
    d[7] = -20.0
    comparison, sentences = compare_differences(d)
    assert comparison.verdict is Verdict.BETTER
    assert not any("which gives a mean" in sentence for sentence in sentences)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_equivalence_with_one_failed_pair_states_the_possible_means(sign):
    """+1.0 in 19 pairs and -19 in one: the mean may lie at -4."""
    d = np.full(20, 1.0) + 0.02 * WAVE
    d[3] = -19.0
    comparison, (sentence,) = compare_differences(sign * d)
    assert comparison.verdict is Verdict.EQUIVALENT
    assert sentence.endswith("+0.98 points to -3.97 points." if sign > 0.0 else "-0.98 points to +3.97 points.")


def test_the_number_of_comparisons_in_a_look_plan_counts_tasks_and_groups():
    contrasts = tuple(
        Contrast(a=a, b=b, task=task) for task in ("one", "two", "three", MEAN) for a, b in (("x", "y"), ("x", "z"))
    )
    large_design = msgspec.structs.replace(design(10), comparisons=contrasts)
    assert look_plan(large_design, 9) == look_plan(design(10), 9).__class__(
        looks="several looks", first=6, comparisons=6
    )
    assert (look_plan(open_ended(), 9).looks, look_plan(design(20), 19).first) == ("after every pair", 19)


def test_a_comparison_without_a_claim_has_no_shape_caveat():
    comparison, sentences = compare_differences(5.0 * TAIL + 15.0)
    assert (comparison.verdict, sentences) == (Verdict.INCONCLUSIVE, [])
