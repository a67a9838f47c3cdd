"""The sentence on the rule of a design."""

import msgspec
import pytest
from support.outcomes.compared_designs import design

from esper_ab.design.non_inferiority import NonInferiority
from esper_ab.verdict.rule_sentence import rule_sentence


@pytest.mark.parametrize(("comparisons", "is_impossible"), [(1, False), (6, False), (8, True)])
def test_the_rule_mentions_that_the_sign_flip_test_can_be_unreachable(comparisons, is_impossible):
    """The smallest p of 8 pairs is 0.0078; each of 8 comparisons has 0.00625 of alpha, and is decided without it."""
    sentence = rule_sentence(design(8, comparisons))
    assert "with 7, 8 or 11 to 20 pairs, the exact sign-flip test agrees" in sentence
    assert (", unless so few pairs can never reach" in sentence) == is_impossible


def test_the_rule_of_a_plan_that_claims_not_worse_names_both_bounds_and_when_they_count():
    plan = design(16, not_worse=NonInferiority(nominal_p=(0.05,)))
    sentence = rule_sentence(plan)
    assert "one-sided at the margin, after 16 seeds (p <= 0.05)." in sentence
    assert "NOT WORSE if, with 15 pairs or more, the one-sided test at the margin of 2 points reaches" in sentence
    assert "EQUIVALENT" not in sentence
    endless = msgspec.structs.replace(plan, looks=(), boundaries=(), anytime_after=0)
    assert "NOT WORSE if, from 25 pairs on, the one-sided" in rule_sentence(endless)
