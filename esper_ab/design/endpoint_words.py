"""What an endpoint is called in sentences."""

from __future__ import annotations


def of_training(endpoint: str, episodes: str = "training episodes") -> str:
    """Say of which part of training an endpoint is the mean, as "all training episodes"; "" of an evaluation's."""
    return {"last-tenth": f"the last tenth of the {episodes}", "curve-mean": f"all {episodes}"}.get(endpoint, "")
