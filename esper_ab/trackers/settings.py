"""Settings of the trackers."""

from __future__ import annotations

from typing import Literal

import msgspec

PROJECT_CHARS = 128  # longest project name of W&B
NOT_IN_A_PROJECT = "/\\#?%:"  # characters that W&B refuses in it


class Tracking(msgspec.Struct, frozen=True, kw_only=True):
    """Trackers that follow an experiment; no result depends on them, so they are not part of the plan's digest."""

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
