"""Whether runs could record the outcomes that a rehearsal found, and could differ by the margin. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.margins import check_seen
from esper_ab.contracts.marked_settings import marked
from esper_ab.contracts.measures import LARGEST_OUTCOME, Measure, countable


def refuse_impossible(outcomes: Iterable[float], measure: Measure) -> None:
    """Raise ValueError if an outcome is too large or not a number, or lies outside the declared range.

    An outcome that is too large or not a number counts as the worse end of the range, if that end is declared.
    """
    worst_outcome = measure.high if measure.better == "lower" else measure.low
    for outcome in outcomes:
        if countable(outcome):
            if not measure.possible(outcome):
                low = "" if measure.low is None else f"{measure.low:g}"
                high = "" if measure.high is None else f"{measure.high:g}"
                range_setting = marked(SettingName("outcome_range", f"{low}..{high}"))
                raise ValueError(
                    f"{measure.label} was {outcome:g} in the rehearsal, outside {range_setting}; correct the range, or "
                    "the outcome that is read"
                )
        elif worst_outcome is None:
            raise ValueError(
                f"{measure.label} was {outcome:g} in the rehearsal, not a number from -{LARGEST_OUTCOME:g} to "
                f"{LARGEST_OUTCOME:g}; to count such an outcome as the worse end of a range, set "
                f"{marked(SettingName('outcome_range'))}"
            )


def refuse_other_unit(outcomes: Iterable[float], measure: Measure, margin: float) -> None:
    """Raise ValueError if the outcomes of whole runs are fractions, and the margin is 1 or more."""
    finite_outcomes = [outcome for outcome in outcomes if countable(outcome)]
    try:
        check_seen(measure, margin, finite_outcomes, SettingName("outcome_range", "LOW..HIGH"))
    except UsageError as error:
        raise ValueError(error.spelled(marked)) from None
