"""What is said about claims for any shape: the missing evidence, and outcomes beyond the declared range."""

import numpy as np
from support.outcomes import look_designs
from support.outcomes.compared_designs import compared, design, pairs_of

from esper_ab.verdict.any_shape_words import any_shape_caveats, lacking_evidence
from esper_ab.verdict.verdict import Verdict

WAVE = np.linspace(-0.5, 0.5, 20)
ANY = design(20, worst=10.0, shape="any")


def compare(d, rule=ANY, b=50.0):
    return compared(rule, pairs_of(b + d, np.full(len(d), b)))


def test_a_difference_of_which_only_the_t_test_excludes_0_says_so():
    comparison = compare(WAVE + 3.0)
    assert lacking_evidence(comparison) == "The t-test excludes 0, but the evidence for any shape does not."
    assert lacking_evidence(comparison) in comparison.sentence
    assert "95 % interval for any shape -14.35 to +19.23" in comparison.sentence
    assert comparison.headline == (
        "Not decided: shaped looks 3.0 points better than simplified, in 20 of 20 pairs, but the 95 % interval that "
        "holds for any shape, 14.4 worse to 19.2 better, includes 0; the t-test alone excludes it; about 193 pairs "
        "would show a difference of 2 points."
    )


def test_a_difference_of_which_only_the_evidence_for_any_shape_excludes_0_says_so():
    early = look_designs.design(looks=(10, 14, 20), adjusted=False, worst=98.0, shape="any")
    differences = np.array([1.999, 1.998, 1.997, 1.996, 1.999, 1.998, 0.001, 0.002, 0.003, 0.004])
    comparison = compared(early, pairs_of(98.0 + differences, np.full(10, 98.0)))
    assert lacking_evidence(comparison) == "The evidence for any shape excludes 0, but the t-test does not."


def test_a_decided_comparison_and_one_of_the_same_shape_lack_nothing():
    assert lacking_evidence(compare(WAVE + 30.0)) == ""
    assert lacking_evidence(compare(WAVE, design(20, worst=10.0))) == ""


def test_a_claim_for_any_shape_has_no_caveat_on_shapes_or_unseen_failures():
    tail = np.log(1.0 - np.linspace(0.02, 0.995, 20)) * 2.0
    same = compare(tail + 35.0, design(20, worst=10.0))
    comparison = compare(tail + 35.0)
    assert (same.verdict, comparison.verdict) == (Verdict.BETTER, Verdict.BETTER)
    assert any("may be unseen" in text for text in same.caveats)
    assert not any("may be unseen" in text or "skewed" in text for text in comparison.caveats)
    assert list(any_shape_caveats(comparison)) == []


def test_an_outcome_beyond_the_declared_range_is_named():
    comparison = compare(WAVE + 60.0, b=4.0)
    assert list(any_shape_caveats(comparison)) == [
        "A run has 4.00 % beyond the worst declared outcome (10.00 %): the interval counts with it, but holds for any "
        "shape only if no run can lie further out."
    ]
    assert list(any_shape_caveats(compare(WAVE + 60.0, design(20, worst=10.0), b=4.0))) == []
