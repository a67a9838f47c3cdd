"""Refuse a margin that no difference can reach, which means that it is in another unit than the outcome. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.measures import Measure

_FRACTION = 1.0  # outcomes from 0 to this are fractions


def check_margin(
    outcome: Measure, margin: float, task: str = "", declared_range: tuple[float, float] | None = None
) -> None:
    """Raise UsageError if the margin is at least as large as the range of possible outcomes.

    `declared_range`: two outcomes that the user named as the ends of the range; if None, the range is that of the
    outcome, or 0 to 100 for percentages.
    """
    low, high = _possible_range(outcome, declared_range)
    if low is not None and high is not None and margin >= high - low:
        raise UsageError(
            f"{_margin(margin, task)}: outcomes range from {low:g} to {high:g}, so no difference is larger; give the "
            "margin in the unit of the outcome"
        )


def _possible_range(outcome: Measure, declared_range: tuple[float, float] | None) -> tuple[float | None, float | None]:
    """Return the ends of the range of possible outcomes; None for an end that is not known."""
    if declared_range:
        return min(declared_range), max(declared_range)
    if outcome.low is None and outcome.high is None and outcome.unit == "%":
        return 0.0, 100.0
    return outcome.low, outcome.high


def check_seen(
    outcome: Measure, margin: float, seen_outcomes: Sequence[float], remedy: SettingName, task: str = ""
) -> None:
    """Raise UsageError if the outcomes seen are fractions and the margin is 1 or more, unless a range is declared.

    Outcomes that are all equal tell nothing about their unit. `remedy`: the setting that declares a range.
    """
    range_known = outcome.low is not None and outcome.high is not None
    if range_known or margin < _FRACTION or not seen_outcomes:
        return
    least_outcome = min(seen_outcomes)
    most_outcome = max(seen_outcomes)
    if least_outcome == most_outcome or least_outcome < 0.0 or most_outcome > _FRACTION:
        return
    if all(value in (0.0, _FRACTION) for value in seen_outcomes):
        reason = (
            f"all {len(seen_outcomes)} outcomes seen are 0 or 1, so no difference is larger than 1; give a margin "
            "below 1"
        )
    else:
        reason = (
            f"the {len(seen_outcomes)} outcomes seen lie between {least_outcome:g} and {most_outcome:g}; if they are "
            "fractions, no difference is larger than 1: give the margin as a fraction, too"
        )
    raise UsageError(f"{_margin(margin, task)}: {reason}, or declare a wider range with ", remedy)


def _margin(margin: float, task: str) -> str:
    if task:
        return f"margin {margin:g} in {task}"
    return f"margin {margin:g}"
