"""The range of possible outcomes from `--outcome-range`, and the value that replaces a NaN. Pure."""

from __future__ import annotations

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.measures import countable
from esper_ab.settings.experiment import ExperimentSettings


def read_range(text: str) -> tuple[float | None, float | None]:
    """Parse LOW..HIGH, where either end may be missing; raises UsageError for anything else."""
    if not text:
        return None, None
    try:
        low_text, high_text = text.split("..")
        low = _read_end(low_text)
        high = _read_end(high_text)
    except ValueError:
        raise _range_error(text) from None
    ends = [end for end in (low, high) if end is not None]
    if not ends or not all(map(countable, ends)) or ends != sorted(set(ends)):
        raise _range_error(text)
    return low, high


def _read_end(text: str) -> float | None:
    """Return the number; None if there is no text. Raises ValueError."""
    return float(text) if text else None


def _range_error(text: str) -> UsageError:
    return UsageError(SettingName("outcome_range"), f": expected LOW..HIGH, as in 0..100 or 0.., not {text!r}")


def worst_outcome(experiment: ExperimentSettings) -> float | None:
    """Return the worse end of the outcome's range; None if the range is open at that end."""
    low, high = read_range(experiment.outcome_range)
    if experiment.outcome_better == "lower":
        return high
    return low
