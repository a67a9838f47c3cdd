"""Which trackers follow a run, and what they would refuse, checked before anything starts. Loads none of them."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.assignments import did_you_mean
from esper_ab.trackers.subject import NAMES, Name

PROJECT_CHARS = 128  # what W&B takes as the name of a project, and what it does not take in it
NOT_IN_A_PROJECT = "/\\#?%:"
_TAG_CHARS = 64  # what W&B takes


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


def wanted(tracking: Tracking) -> tuple[Name, ...]:
    """Names of the trackers that are asked for."""
    asked = {"wandb": tracking.wandb != "off", "tensorboard": tracking.tensorboard, "mlflow": tracking.mlflow}
    return tuple(name for name in NAMES if asked[name])


def wandb_mode(flag: str, asked: str | None) -> Literal["online", "offline"]:
    """The mode given with `flag`, or WANDB_MODE, or online; UsageError for any other word."""
    origin, mode = (flag, asked) if asked else ("WANDB_MODE", os.environ.get("WANDB_MODE") or "online")
    if mode not in ("online", "offline"):
        raise UsageError(f"{origin} {mode!r}: online or offline; leave wandb out for none")
    return "online" if mode == "online" else "offline"


def server_of(name: Name, tracking: Tracking) -> str:
    """The server that a tracker talks to, as far as the settings say; "" for one that writes files here."""
    if name == "wandb" and tracking.wandb == "online":
        return os.environ.get("WANDB_BASE_URL") or "api.wandb.ai"
    store = tracking.mlflow_uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    parts = urlsplit(store)
    if name == "mlflow" and parts.scheme in ("http", "https"):
        return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
    return "Databricks" if name == "mlflow" and store.startswith("databricks") else ""


def check_tracking(tracking: Tracking) -> None:
    """UsageError for a library that is not installed, and for what a tracker would refuse later."""
    for name in wanted(tracking):
        needed: list[str] = [name]
        store = tracking.mlflow_uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:"  # MLflow's own default
        if name == "mlflow" and store.startswith("sqlite"):
            needed.append("sqlalchemy")
        for module in needed:
            if importlib.util.find_spec(module) is None:
                raise UsageError(f"{name} needs {module}, which is not installed: pip install 'esper-ab[{name}]'")
    if urlsplit(tracking.mlflow_uri).password:
        use = "use MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        raise UsageError(f"the URI of MLflow holds a password, which would be kept in the experiment directory; {use}")
    if len(tracking.wandb_project) > PROJECT_CHARS or set(NOT_IN_A_PROJECT) & set(tracking.wandb_project):
        raise UsageError(f"W&B project {tracking.wandb_project!r}: W&B takes {PROJECT_CHARS} characters at most, and "
                         f"none of {' '.join(NOT_IN_A_PROJECT)}")  # fmt: skip
    for group, tags in tracking.tags.items():
        for tag in tags:
            if not 0 < len(tag) <= _TAG_CHARS:
                raise UsageError(f"tag {tag!r} of {group}: 1 to {_TAG_CHARS} characters, which is what trackers take")
