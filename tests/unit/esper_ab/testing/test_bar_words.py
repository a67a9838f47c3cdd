"""The words of `assert_learns`: what is claimed, and why nothing is."""

import pytest

from esper_ab.stats.mean_and_bar import mean_and_bar
from esper_ab.testing.bar_words import BarQuestion, headline, outcomes_line, reason_open

OUTCOMES = [9.0, 10.0, 11.0, 10.5, 9.5, 10.0, 10.2, 9.8]


def question(bar: float, *, sign: int = 1, any_shape: bool = False) -> BarQuestion:
    return BarQuestion(name="train", bar=bar, sign=sign, alpha=0.05, any_shape=any_shape)


@pytest.mark.parametrize(
    ("bar", "sign", "words"),
    [
        (5.0, 1, "The mean outcome of train is above 5: mean 10 of 8 runs, 90 % interval "),
        (15.0, 1, "The mean outcome of train is not above 15: "),
        (15.0, -1, "The mean outcome of train is below 15: "),
        (5.0, -1, "The mean outcome of train is not below 5: "),
        (9.9, 1, "Not decided whether the mean outcome of train is above 9.9: "),
    ],
)
def test_the_headline_says_what_is_claimed(bar, sign, words):
    assert headline(question(bar, sign=sign), mean_and_bar(OUTCOMES, bar, 0.05)).startswith(words)


def test_an_open_answer_says_how_many_seeds_would_decide():
    reason = reason_open(question(9.9), mean_and_bar(OUTCOMES, 9.9, 0.05), "All 8 seeds are used")
    assert reason == "All 8 seeds are used; if mean and spread stay so (SD 0.607), 396 seeds would decide."


def test_an_open_answer_without_a_difference_names_no_number():
    assert reason_open(question(10.0), mean_and_bar(OUTCOMES, 10.0, 0.05), "x").endswith("for any budget.")


def test_outcomes_without_spread_are_told_how_they_would_count():
    answer = mean_and_bar([1.0] * 8, 0.5, 0.05)
    assert headline(question(0.5), answer).endswith("mean 1 of 8 runs, no 90 % interval.")
    assert reason_open(question(0.5), answer, "x").startswith("8 of 8 outcomes are equal, and a t test needs spread.")


def test_with_a_range_no_number_of_seeds_is_named():
    answer = mean_and_bar(OUTCOMES, 9.0, 0.05, (0.0, 20.0))
    assert reason_open(question(9.0, any_shape=True), answer, "All 8 seeds are used").startswith(
        "All 8 seeds are used;"
    )


def test_many_outcomes_are_cut():
    assert outcomes_line([1.0, 2.5]) == "outcomes: 1 2.5"
    assert outcomes_line([1.0] * 30).endswith(" 1 and 10 more")
