"""What a plan says that moderated variances would save."""

import pytest
from support.plans import fake_plans

from esper_ab.design.moderation_text import saved_seeds


def design(groups, seeds, **changes):
    return fake_plans.plan(6, groups, seeds=seeds, **changes).design


def test_a_plan_of_six_groups_says_how_many_seeds_would_suffice():
    assert saved_seeds(design("abcdef", 10)) == (
        "--variances moderated, which shares the variances of the 15 comparisons, would find the same differences with "
        "9 instead of 10 seeds, if the runs of all groups vary alike."
    )


@pytest.mark.parametrize(
    ("groups", "seeds", "changes"),
    [
        ("ab", 10, {}),
        ("abcdef", 6, {}),  # no verdict with fewer
        ("abcdef", 5, {}),
        ("abcdef", 10, {"variances": "moderated"}),
        ("abc", 10, {"open_ended": True}),
    ],
)
def test_a_plan_that_would_save_no_seed_says_nothing(groups, seeds, changes):
    assert saved_seeds(design(groups, seeds, **changes)) == ""
