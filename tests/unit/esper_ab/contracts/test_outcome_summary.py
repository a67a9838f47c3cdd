import math

import pytest

from esper_ab.contracts.outcome_summary import read_summary, summarise

CURVE = [1.0, 4.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("text", "outcome", "place"),
    [
        ("", 3.0, 3),
        ("last", 3.0, 3),
        ("mean-last-1", 3.0, 3),
        ("mean-last-2", 2.5, 3),
        ("mean-last-10", 2.5, 3),
        ("max", 4.0, 1),
        ("min", 1.0, 0),
    ],
)
def test_a_summary_of_a_curve_gives_its_number_with_the_position(text: str, outcome: float, place: int) -> None:
    assert summarise(read_summary(text), len(CURVE), CURVE.__getitem__) == (outcome, place)


def test_a_summary_of_a_curve_reads_only_the_required_numbers() -> None:
    read = []

    def at(place: int) -> float:
        read.append(place)
        return CURVE[place]

    summarise(read_summary("mean-last-2"), len(CURVE), at)
    summarise(read_summary("last"), len(CURVE), at)
    assert read == [2, 3, 3]


@pytest.mark.parametrize("text", ["max", "min", "mean-last-4"])
def test_a_curve_with_a_nan_has_no_outcome(text: str) -> None:
    curve = [1.0, math.nan, 3.0]
    assert math.isnan(summarise(read_summary(text), len(curve), curve.__getitem__)[0])


@pytest.mark.parametrize("curve", [[math.inf, -math.inf], [1.7e308, 1.7e308]])
def test_a_mean_that_overflows_is_nan(curve: list[float]) -> None:
    assert math.isnan(summarise(read_summary("mean-last-2"), 2, curve.__getitem__)[0])


@pytest.mark.parametrize("text", ["best", "mean", "mean-last-", "mean-last-0", "mean-last-1.5", "mean-last-10 ", "Max"])
def test_the_refusal_of_an_unknown_summary_lists_the_known_summaries(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected last, mean-last-K \(as in mean-last-10\), max or min, not '"):
        read_summary(text)


@pytest.mark.parametrize(
    ("text", "total", "words"),
    [
        ("", 40, "the last of 40 values"),
        ("mean-last-10", 40, "the mean of the last 10 of 40 values"),
        ("mean-last-10", 4, "the mean of all 4 values (fewer than 10)"),
        ("max", 40, "the largest of 40 values"),
        ("min", 40, "the smallest of 40 values"),
    ],
)
def test_the_words_of_a_measured_summary_state_the_number_of_values(text: str, total: int, words: str) -> None:
    assert read_summary(text).words_of(total) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("last", "the last value"),
        ("mean-last-10", "the mean of the last 10 values"),
        ("max", "the largest value"),
        ("min", "the smallest value"),
    ],
)
def test_the_words_of_a_planned_summary_state_no_number_of_values(text: str, words: str) -> None:
    assert read_summary(text).words == words
