"""Which trackers follow a run, and what they would refuse, checked before anything starts. Loads none of them."""

from __future__ import annotations

import importlib.util
import os
import re
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
_MLFLOW_URI = "MLFLOW_TRACKING_URI"
_CREDENTIALS = re.compile(r"(?<=//)[^/?#\s'\"]*@")


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
        return without_credentials(os.environ.get("WANDB_BASE_URL") or "api.wandb.ai")
    if name != "mlflow":
        return ""
    store = mlflow_store(tracking)
    parts = urlsplit(store)
    if parts.scheme in ("http", "https"):
        return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
    return "Databricks" if store.startswith("databricks") else ""


def without_credentials(text: str) -> str:
    """Return `text` without what a URI in it says of a user: //host in the place of //user:password@host."""
    return _CREDENTIALS.sub("", text)


def mlflow_store(tracking: Tracking) -> str:
    """The URI of MLflow's server or store, "" for MLflow's own default; UsageError for one that holds a password.

    Whatever a library makes of it would end up in the experiment directory.
    """
    if tracking.mlflow_uri:
        _check_uri(tracking.mlflow_uri, "the URI of MLflow")
        return tracking.mlflow_uri
    uri = os.environ.get(_MLFLOW_URI, "")
    _check_uri(uri, _MLFLOW_URI)
    return uri


def _check_uri(uri: str, origin: str) -> None:
    """UsageError for a URI that holds a password, and for one that is none, which may hold one."""
    try:
        parts = urlsplit(uri)
        password, _ = parts.password, parts.port
    except ValueError:
        raise UsageError(f"{origin} is no URI, as in http://localhost:5000") from None
    if password:
        use = (
            "use MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD" if parts.scheme in ("http", "https") else
            "name a server of MLflow, or leave it to the database's client to find it, as in ~/.pgpass"
        )  # fmt: skip
        raise UsageError(f"{origin} holds a password, which would be kept in the experiment directory; {use}")


def check_tracking(tracking: Tracking) -> None:
    """UsageError for a library that is not installed, and for what a tracker would refuse later."""
    for name in wanted(tracking):
        needed: list[str] = [name]
        if name == "mlflow" and (mlflow_store(tracking) or "sqlite:").startswith("sqlite"):  # MLflow's own default
            needed.append("sqlalchemy")
        for module in needed:
            if importlib.util.find_spec(module) is None:
                raise UsageError(f"{name} needs {module}, which is not installed: pip install 'esper-ab[{name}]'")
    _check_uri(tracking.mlflow_uri, "the URI of MLflow")  # which is kept, whoever follows
    if len(tracking.wandb_project) > PROJECT_CHARS or set(NOT_IN_A_PROJECT) & set(tracking.wandb_project):
        raise UsageError(f"W&B project {tracking.wandb_project!r}: W&B takes {PROJECT_CHARS} characters at most, and "
                         f"none of {' '.join(NOT_IN_A_PROJECT)}")  # fmt: skip
    for group, tags in tracking.tags.items():
        for tag in tags:
            if not 0 < len(tag) <= _TAG_CHARS:
                raise UsageError(f"tag {tag!r} of {group}: 1 to {_TAG_CHARS} characters, which is what trackers take")
