"""What follows a run into other tools."""

from __future__ import annotations

from typing import Literal

import msgspec

PROJECT_CHARS = 128  # what W&B takes as the name of a project, and what it does not take in it
NOT_IN_A_PROJECT = "/\\#?%:"


class Tracking(msgspec.Struct, frozen=True, kw_only=True):
    """Which trackers follow a run; no result depends on it, so it is not part of the plan's digest."""

    wandb: Literal["off", "online", "offline"] = "off"
    #: The team or user at Weights & Biases; "" is the one that wandb is logged in as.
    wandb_entity: str = ""
    #: "" is ``ab_test_{name}_{date}``.
    wandb_project: str = ""
    tensorboard: bool = False
    mlflow: bool = False
    #: "" is ``MLFLOW_TRACKING_URI``, or else what mlflow itself takes.
    mlflow_uri: str = ""
    description: str = ""
    #: The tags of every variant, by group.
    tags: dict[str, tuple[str, ...]] = {}

    @property
    def anything(self) -> bool:
        """Whether any tracker is wanted."""
        return self.wandb != "off" or self.tensorboard or self.mlflow
