"""Unit, direction and margin of the outcomes of each task."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.scales import ranges_of, read_by_task, scales_of, with_best


def test_a_scale_applies_to_all_tasks_or_to_the_named_tasks():
    scales = scales_of(("a", "b"), read_by_task("a=2,b=0.5"), better=read_by_task("b=lower"), unit="%")
    assert [(scale.task, scale.margin, scale.outcome.better) for scale in scales] == [
        ("a", 2.0, "higher"),
        ("b", 0.5, "lower"),
    ]
    assert scales[0].outcome.difference("1.20") == "1.20 points"
    assert [scale.margin for scale in scales_of(("a", "b"), read_by_task("3"))] == [3.0, 3.0]


def test_a_range_of_scores_has_two_finite_ends():
    assert ranges_of(("a", "b"), read_by_task("a=0..100,b=3..-1e3")) == {"a": (0.0, 100.0), "b": (3.0, -1000.0)}


@pytest.mark.parametrize("text", ["0..inf", "nan..100", "-inf..0", "0..0", "0..1e200", "0..1e-300", "0", "0..x"])
def test_an_invalid_range_of_scores_is_refused(text):
    with pytest.raises(UsageError, match="two different finite numbers"):
        ranges_of(("",), text)


def test_the_best_possible_outcome_is_the_better_end_of_the_range():
    scales = scales_of(("a", "b"), "1", better=read_by_task("b=lower"), worst="50")
    scales = with_best(scales, read_by_task("a=90,b=2"))
    assert [(scale.worst, scale.best) for scale in scales] == [(50.0, 90.0), (50.0, 2.0)]
    assert [(scale.outcome.low, scale.outcome.high) for scale in scales] == [(None, 90.0), (2.0, None)]


@pytest.mark.parametrize(("better", "worst", "best"), [("higher", "5", "3"), ("lower", "3", "5"), ("higher", "3", "3")])
def test_a_best_outcome_that_is_not_better_than_the_worst_is_refused(better, worst, best):
    with pytest.raises(UsageError, match="the best possible outcome must be"):
        with_best(scales_of(("",), "1", better=better, worst=worst), best)
