import math
import re

import pytest

from esper_ab.contracts.measures import Measure
from workers.kinds.trainer.possible_outcome import refuse_impossible, refuse_other_unit


def measure(better_direction: str = "higher", **ends: float) -> Measure:
    return Measure(name="outcome", label="return", better=better_direction, **ends)


def problem_with(outcome: float, declared_measure: Measure) -> str:
    try:
        refuse_impossible([outcome], declared_measure)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("outcome", "declared_measure"),
    [
        (0.5, measure()),
        (-1e40, measure()),
        (0.0, measure(low=0.0, high=1.0)),
        (1.0 + 1e-12, measure(high=1.0)),
        (math.nan, measure(low=0.0)),
        (1e308, measure("lower", high=9.0)),
    ],
)
def test_a_possible_outcome_is_accepted(outcome: float, declared_measure: Measure) -> None:
    assert problem_with(outcome, declared_measure) == ""


@pytest.mark.parametrize(
    ("outcome", "declared_measure", "complaint"),
    [
        (
            0.5,
            measure(low=10.0, high=20.0),
            r"return was 0.5 in the rehearsal, outside ⟦outcome_range=10\.\.20⟧; correct",
        ),
        (0.5, measure(low=10.0), r"range=10\.\.⟧;"),
        (9.0, measure("lower", high=1.0), r"range=\.\.1⟧;"),
        (
            math.nan,
            measure(),
            "return was nan in the rehearsal, not a number from -1e.40 to 1e.40; .* set ⟦outcome_range⟧",
        ),
        (1e308, measure(high=9.0), "was 1e.308"),
        (-math.inf, measure("lower", low=0.0), "was -inf"),
    ],
)
def test_an_impossible_outcome_is_refused(outcome: float, declared_measure: Measure, complaint: str) -> None:
    assert re.search(complaint, problem_with(outcome, declared_measure))


@pytest.mark.parametrize(
    ("observed", "declared_measure", "margin", "is_refused"),
    [
        ((0.2, 0.9), measure(), 2.0, True),
        ((0.2, math.nan, 0.9), measure(low=0.0), 1.0, True),
        ((0.0, 1.0), measure(), 2.0, True),
        ((0.2, 0.9), measure(low=0.0, high=50.0), 2.0, False),
        ((0.2, 0.9), measure(), 0.5, False),
        ((0.2, 1.9), measure(), 2.0, False),
        ((1.0, 1.0), measure(), 2.0, False),
        ((), measure(), 2.0, False),
    ],
)
def test_a_margin_above_1_is_refused_for_outcomes_that_are_fractions(
    observed, declared_measure, margin, is_refused
) -> None:
    if not is_refused:
        refuse_other_unit(observed, declared_measure, margin)
        assert margin < 1.0 or not observed or max(observed) >= 1.0 or declared_measure.high is not None
        return
    with pytest.raises(ValueError, match=r"is larger than 1.* a wider range with ⟦outcome_range=LOW\.\.HIGH⟧"):
        refuse_other_unit(observed, declared_measure, margin)
