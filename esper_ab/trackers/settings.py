"""Settings of the trackers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.assignments import did_you_mean

PROJECT_CHARS = 128  # what W&B takes as the name of a project, and what it does not take in it
NOT_IN_A_PROJECT = "/\\#?%:"


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


_SET = tuple(name for name in Tracking.__struct_fields__ if name not in ("description", "tags"))


def change_tracking(before: Tracking, changes: Mapping[str, Any]) -> Tracking:
    """Return `before` with `changes`; UsageError for what no tracker has."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(Tracking)}
    for name, value in changes.items():
        if name not in _SET:
            raise UsageError(f"set_tracking: no {name!r}; {did_you_mean(name, _SET)}")
        try:
            msgspec.convert(value, type=kinds[name], strict=True)
        except msgspec.ValidationError:
            right = {bool: "True or False", str: "text"}.get(kinds[name]) or ", ".join(get_args(kinds[name]))
            raise UsageError(f"set_tracking: {name}={value!r}: expected {right}") from None
    return msgspec.structs.replace(before, **changes)
