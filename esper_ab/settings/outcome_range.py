"""The range of possible outcomes from `--outcome-range`, and the value that replaces a NaN. Pure."""

from __future__ import annotations

from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.measures import countable
from esper_ab.settings.experiment import ExperimentSettings


def read_range(text: str) -> tuple[float | None, float | None]:
    """Parse LOW..HIGH, where either end may be missing; raises UsageError for anything else."""
    if not text:
        return None, None
    parts = text.split("..")
    try:
        low, high = (float(part) if part else None for part in parts)
        known = [end for end in (low, high) if end is not None]
        if known and all(map(countable, known)) and known == sorted(set(known)):
            return low, high
    except ValueError:
        pass
    raise UsageError(Setting("outcome_range"), f": expected LOW..HIGH, as in 0..100 or 0.., not {text!r}")


def worst_outcome(experiment: ExperimentSettings) -> float | None:
    """Return the worse end of the outcome's range; None if the range is open at that end."""
    low, high = read_range(experiment.outcome_range)
    if experiment.outcome_better == "lower":
        return high
    return low
