"""What an outcome is called in sentences."""

from __future__ import annotations


def of_training(outcome: str, episodes: str = "training episodes") -> str:
    """Say of which part of training an outcome is the mean, as "all training episodes"; "" of an evaluation's."""
    return {"last-tenth": f"the last tenth of the {episodes}", "curve-mean": f"all {episodes}"}.get(outcome, "")
