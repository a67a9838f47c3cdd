"""Lost runs replaced by the worst that was seen: what is put in, what is left out, and what it can overturn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.comparing import design, pairs_of

from esper_ab.design.design import Boundary
from esper_ab.verdict.imputation import imputed, recurs_in, worst_value
from esper_ab.verdict.looks import follow
from esper_ab.verdict.question import HalfPair, Lost


def half(replicate, a, b, failed="ab"):
    """A replicate that was given up; the runs without endpoint failed, if `failed` names them."""
    return HalfPair(
        replicate=replicate, a=a, b=b, failed_a=a is None and "a" in failed, failed_b=b is None and "b" in failed,
        position_a=0, position_b=1,
    )


def course_of(rule, pairs, complete):
    return follow(rule, {rule.comparisons[0]: pairs}, complete)[rule.comparisons[0]]


def test_what_failed_gets_the_worst_of_both_groups_and_what_was_cancelled_the_mean_of_its_own():
    pairs = pairs_of([70.0, 72.0], [66.0, 70.0])
    halves = (half(2, None, 80.0), half(3, 60.0, None), half(4, None, None, failed="a"), half(5, None, None, failed=""))
    completed, worst = worst_value(pairs, halves)
    assert worst == 60.0
    assert [(pair.replicate, pair.a, pair.b) for pair in completed] == [
        (0, 70.0, 66.0), (1, 72.0, 70.0), (2, 60.0, 80.0), (3, 60.0, 60.0), (4, 60.0, 72.0)
    ]  # a third group's failure, replicate 5, says nothing about these two
    with pytest.raises(ValueError, match="no endpoint"):
        worst_value((), (half(0, None, None),))


@pytest.mark.parametrize(
    ("halves", "expected"),
    [
        ((half(0, None, 1.0),), None),
        ((half(0, None, 1.0), half(1, None, 1.0)), "x"),
        ((half(0, 1.0, None), half(1, 1.0, None)), "y"),
        ((half(0, None, 1.0), half(1, None, 1.0), half(2, 1.0, None)), None),
        ((half(0, None, None, failed="a"), half(1, None, None, failed="a")), "x"),
        ((half(0, None, None, failed=""), half(1, None, None, failed="")), None),
    ],
)
def test_losses_recur_from_two_in_one_group_and_none_in_the_other(halves, expected):
    assert recurs_in("x", "y", Lost(replicates=halves)) == expected


def test_losses_after_the_deciding_look_do_not_count():
    rule = design(10)
    pairs = pairs_of(75.0 + np.arange(6) * 0.1, 70.0 + np.arange(6) * 0.2)
    course = course_of(rule, pairs, 6)
    assert course.decided_at == 6
    assert imputed(rule, pairs, course, Lost(replicates=(half(7, None, 99.0),))) is None


def test_without_early_stop_losses_up_to_the_last_look_count():
    """The numbers and the verdict are those of the last look, and so are the losses that could overturn them."""
    rule = design(10, early_stop=False)
    pairs = pairs_of(75.0 + np.arange(7) * 0.1, 70.0 + np.arange(7) * 0.2)
    course = course_of(rule, pairs, 10)
    assert (course.decided_at, course.looks[-1].replicates) == (6, 10)
    again = imputed(rule, pairs, course, Lost(replicates=tuple(half(r, None, 75.0) for r in (7, 8, 9))))
    assert again is not None
    assert (again.pairs, again.survives) == (10, False)


def test_it_is_asked_with_the_bound_that_decided():
    """The same lost run leaves a decision at 0.05 and overturns one at 0.0076."""
    pairs = pairs_of([75.0, 76.2, 74.1, 75.7, 76.0, 74.4], [70.1, 72.0, 70.3, 70.0, 71.7, 70.4])
    lost = Lost(replicates=(half(6, None, 73.0),))
    strict = design(8, boundaries=(Boundary(open=1, alpha=0.05, nominal_p=(0.0076,)),))
    lenient, stern = (imputed(rule, pairs, course_of(rule, pairs, 8), lost) for rule in (design(8), strict))
    assert lenient.p == stern.p
    assert 0.0076 < lenient.p < 0.05
    assert (lenient.survives, stern.survives) == (True, False)


@given(
    st.lists(st.floats(-2.0, 2.0), min_size=6, max_size=6).filter(lambda d: np.std(d) > 0.05),
    st.lists(st.floats(50.0, 90.0), min_size=1, max_size=2),
)
def test_what_the_better_group_lost_never_strengthens_it(noise, survivors):
    rule = design(8)
    pairs = pairs_of(np.full(6, 75.0), 70.0 + np.array(noise))
    course = course_of(rule, pairs, 8)
    lost = Lost(replicates=tuple(half(6 + i, None, b) for i, b in enumerate(survivors)))
    again = imputed(rule, pairs, course, lost)
    if course.decision == "open":
        assert again is None
        return
    assert again.mean <= course.looks[-1].mean
    assert again.pairs == 6 + len(survivors)
    assert again.lost_a == len(survivors)
