"""The experiment's results as numbers and texts for trackers. Pure; loads numpy and scipy."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.analysis.trained_by import result_hash
from esper_ab.design.design import rule
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import mean, outcomes
from esper_ab.verdict.comparison import Comparison

_NUMBERS = ("estimate", "low", "high", "used")  # fields of a comparison


def verdict_numbers(history: History, comparisons: Sequence[Comparison]) -> dict[str, float]:
    """Return numbers of each comparison by `a-b/name`, and each group's mean outcome."""
    numbers: dict[str, float | None] = {
        f"{one.question.a}-{one.question.b}/{name}": getattr(one, name) for one in comparisons for name in _NUMBERS
    } | {f"{one.question.a}-{one.question.b}/hedges_g": one.descriptive["hedges_g"] for one in comparisons}
    found = outcomes(history)
    for group in history.groups:
        numbers[f"outcome/{group}"] = mean(found[run.ref.name].outcome for run in history.of_group(group))
    return {name: float(value) for name, value in numbers.items() if value is not None}


def verdict_words(history: History, comparisons: Sequence[Comparison]) -> dict[str, str]:
    """Return verdict, headline and sentence by `a-b/name`, rule, measure, result hash and final state."""
    words: dict[str, str] = {}
    for one in comparisons:
        told = {"verdict": one.verdict.value, "headline": one.headline, "sentence": one.sentence}
        words |= {f"{one.question.a}-{one.question.b}/{name}": text for name, text in told.items()}
    ended, outcome = history.ended, history.outcome
    return words | {
        "rule": rule(history.design), "result": result_hash(history),
        "measured": f"{outcome.title}; {outcome.better} is better",
        "state": "" if ended is None else " ".join(filter(None, (ended.status, ended.detail))),
    }
