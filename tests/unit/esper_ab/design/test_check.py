"""Settings without a possible design are refused with a remedy."""

import pytest
from support.plans import fake_plans

from esper_ab.contracts.errors import UsageError


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"control": "d"}, "no such group; the groups are a, b, c"),
        ({"untested": ("d",)}, "no such group; the groups are a, b, c"),
        ({"control": "a", "untested": ("a",)}, "the control must be tested"),
        ({"untested": ("b", "c")}, "leaves fewer than two groups to compare"),
        ({"looks": (20, 14)}, "looks must ascend and end at 20"),
        ({"looks": (14,)}, "looks must ascend and end at 20"),
        ({"looks": (4, 20)}, "the first look needs at least 6 seeds"),
        ({"futility": 0.4}, "the power to keep must be at least 0.5"),
        ({"futility": 0.8, "early_stop": False}, "early stopping is off"),
        ({"futility": 0.8, "seeds": 15}, "a plan of 15 seeds has a single look"),
    ],
)
def test_settings_without_a_possible_design_are_refused(changes, words):
    with pytest.raises(UsageError, match=words):
        fake_plans.plan(**{"groups": ("a", "b", "c"), "cores": 3, "seeds": 20, **changes})
