"""The range of possible outcomes: refused if an end is missing."""

import pytest

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.measures import Measure
from esper_ab.design.possible_outcomes import check_possible

HIGHER = Measure(name="score", label="score", better="higher", low=0.0, high=100.0)
LOWER = Measure(name="loss", label="loss", better="lower", low=0.0)
REMEDY = (SettingName("outcome_range", "LOW..HIGH"),)


def test_a_range_with_both_ends_is_accepted():
    check_possible(HIGHER, 10.0, REMEDY)
    check_possible(LOWER, 9.0, REMEDY)


@pytest.mark.parametrize(
    ("outcome", "worst", "missing"),
    [
        (HIGHER, None, "the worst possible outcome,"),
        (Measure(name="score", label="score", better="higher", low=0.0), 0.0, "the best possible outcome,"),
        (
            Measure(name="loss", label="loss", better="lower", high=9.0),
            None,
            "the worst and the best possible outcome,",
        ),
    ],
)
def test_a_range_without_an_end_is_refused_in_one_line(outcome, worst, missing):
    with pytest.raises(UsageError, match=missing) as refusal:
        check_possible(outcome, worst, REMEDY)
    assert str(refusal.value).startswith("--shape any needs ")
    assert str(refusal.value).endswith("declare the range with --outcome-range LOW..HIGH")


def test_the_task_whose_range_is_open_is_named():
    with pytest.raises(UsageError, match="the worst possible outcome of Hopper,"):
        check_possible(HIGHER, None, (SettingName("worst"), SettingName("best")), "Hopper")
