"""The answer of `assert_learns` in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from esper_ab.contracts.wording import counted
from esper_ab.stats.mean_and_bar import MeanAndBar, seeds_needed
from esper_ab.stats.text import percent

_SHOWN = 20  # outcomes


@dataclass(frozen=True, kw_only=True)
class BarQuestion:
    """What is asked of the mean outcome."""

    name: str  # of what is trained
    bar: float
    sign: int  # 1: the mean is to be above the bar, -1: below
    alpha: float
    any_shape: bool


def headline(question: BarQuestion, answer: MeanAndBar) -> str:
    """Say what is claimed, in one line."""
    numbers = f"mean {answer.mean:.5g} of {counted(answer.count, 'run')}, {_interval(question, answer)}"
    claim = f"{'above' if question.sign > 0 else 'below'} {question.bar:.5g}"
    if not answer.side:
        return f"Not decided whether the mean outcome of {question.name} is {claim}: {numbers}."
    verb = "is" if answer.side == question.sign else "is not"
    return f"The mean outcome of {question.name} {verb} {claim}: {numbers}."


def _interval(question: BarQuestion, answer: MeanAndBar) -> str:
    level = percent(1.0 - 2.0 * question.alpha)
    if math.isinf(answer.low) and math.isinf(answer.high):
        return f"no {level} interval"
    return f"{level} interval {answer.low:.5g} to {answer.high:.5g}"


def reason_open(question: BarQuestion, answer: MeanAndBar, budget: str) -> str:
    """Say why nothing is claimed, and how many seeds would do; `budget` is what has been used up."""
    if answer.lacks_spread and not question.any_shape:
        return (
            f"{answer.alike} of {answer.count} outcomes are equal, and a t test needs spread. With the range of "
            'possible outcomes none is needed: shape="any", outcome_range="LOW..HIGH".'
        )
    if question.any_shape:
        return f"{budget}; the rule for any shape needs more seeds, a narrower range, or a bar further away."
    count = seeds_needed(answer.mean - question.bar, answer.sd, question.alpha)
    if count is None:
        return f"{budget}; the mean is too near to the bar for any budget."
    return f"{budget}; if mean and spread stay so (SD {answer.sd:.3g}), {counted(count, 'seed')} would decide."


def outcomes_line(outcomes: Sequence[float]) -> str:
    """List the first outcomes, by seed."""
    first_outcomes = " ".join(f"{outcome:.5g}" for outcome in outcomes[:_SHOWN])
    hidden_count = len(outcomes) - _SHOWN
    return f"outcomes: {first_outcomes}" + (f" and {hidden_count} more" if hidden_count > 0 else "")
