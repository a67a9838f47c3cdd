"""The price of `--shape any` in words."""

import msgspec
import pytest
from support.outcomes.compared_designs import design

from esper_ab.design.any_shape_text import price_line, seeds_needed
from esper_ab.design.design import Boundary
from esper_ab.design.non_inferiority import NonInferiority

ANY = design(20, worst=10.0, shape="any")


def cost(seeds):
    return f"{seeds / 10:.0f} h"


def test_a_plan_that_assumes_one_shape_has_no_price():
    assert price_line(design(20, worst=10.0)) == ""


def test_a_plan_that_decides_nothing_has_no_price():
    assert price_line(msgspec.structs.replace(ANY, boundaries=())) == ""


def test_without_a_spread_the_price_is_the_least_possible_one():
    assert price_line(ANY) == (
        "With --shape any (outcomes from 10 to 100 %), 20 seeds find only differences of 21 points or more, even if "
        "runs hardly vary. A difference of 2 points, the margin, takes at least 191 seeds."
    )


def test_with_a_spread_the_price_is_compared_with_that_of_the_t_test():
    assert price_line(ANY, 4.0, cost) == (
        "With --shape any (outcomes from 10 to 100 %), a difference of 2 points, the margin, takes about 225 seeds "
        "(22 h) instead of 34."
    )


def test_the_price_of_the_claim_not_worse_is_one_sided():
    claim = design(20, worst=10.0, shape="any", not_worse=NonInferiority(nominal_p=(0.05,)))
    assert price_line(claim, 4.0) == (
        "With --shape any (outcomes from 10 to 100 %), showing that a group is not worse by 2 points takes about 185 "
        "seeds instead of 27."
    )


def test_few_seeds_can_show_nothing_if_many_comparisons_share_alpha():
    boundaries = tuple(Boundary(open=n, alpha=0.05 / n, nominal_p=(0.05 / n,)) for n in (3, 2, 1))
    few = design(6, comparisons=3, boundaries=boundaries, worst=10.0, shape="any")
    assert "6 seeds can show no difference at all." in price_line(few)


def test_a_price_beyond_what_is_named_is_a_bound():
    tiny_margin = msgspec.structs.replace(ANY, margin=0.001)
    assert "takes at least more than 10,000 seeds" not in price_line(tiny_margin)
    assert "takes more than 10,000 seeds" in price_line(tiny_margin)


@pytest.mark.parametrize(("shape_design", "seeds"), [(design(20, worst=10.0), 34), (ANY, 225)])
def test_the_seeds_needed_are_those_of_the_rule_of_the_plan(shape_design, seeds):
    assert seeds_needed(shape_design, 4.0) == seeds
