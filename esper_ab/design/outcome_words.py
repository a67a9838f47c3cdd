"""Names of outcomes in sentences."""

from __future__ import annotations


def of_training(outcome: str, episodes: str = "training episodes") -> str:
    """Return the part of training that an outcome averages, as in "all training episodes"; "" for an evaluation."""
    parts = {
        "last-tenth": f"the last tenth of the {episodes}",
        "last-third": f"the last third of the {episodes}",
        "curve-mean": f"all {episodes}",
    }
    return parts.get(outcome, "")
