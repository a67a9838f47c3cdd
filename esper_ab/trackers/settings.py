"""Which trackers follow a run, and checks of their settings before anything starts. Loads no tracker's library."""

from __future__ import annotations

import importlib.util
import os
import re
from typing import Literal

import msgspec

from esper_ab.contracts.errors import UsageError

Name = Literal["wandb", "tensorboard"]
NAMES: tuple[Name, ...] = ("wandb", "tensorboard")
PROJECT_CHARS = 128  # longest project name that W&B accepts, and characters that it refuses there
NOT_IN_A_PROJECT = "/\\#?%:"
_TAG_CHARS = 64  # longest tag that W&B accepts
_CREDENTIALS = re.compile(r"(?<=//)[^/?#\s'\"]*@")


class Tracking(msgspec.Struct, frozen=True, kw_only=True):
    """Trackers that follow an experiment. No result depends on them, so they are not part of the plan's digest."""

    wandb: Literal["off", "online", "offline"] = "off"
    #: The team or user at Weights & Biases; "" is the one that wandb is logged in as.
    wandb_entity: str = ""
    #: "" is ``ab_test_{name}_{date}``.
    wandb_project: str = ""
    tensorboard: bool = False
    description: str = ""
    #: The tags of every variant, by group.
    tags: dict[str, tuple[str, ...]] = {}


def wanted(tracking: Tracking) -> tuple[Name, ...]:
    """Return the names of the requested trackers."""
    wanted_by_name = {"wandb": tracking.wandb != "off", "tensorboard": tracking.tensorboard}
    return tuple(name for name in NAMES if wanted_by_name[name])


def wandb_mode(flag: str, asked_mode: str | None) -> Literal["online", "offline"]:
    """Return the mode given by `flag`, else by WANDB_MODE, else online. Raises UsageError for an unknown mode."""
    origin = flag if asked_mode else "WANDB_MODE"
    mode = asked_mode or os.environ.get("WANDB_MODE") or "online"
    if mode == "online":
        return "online"
    if mode == "offline":
        return "offline"
    raise UsageError(f"{origin} {mode!r}: expected online or offline; to use neither, omit wandb")


def server_of(name: Name, tracking: Tracking) -> str:
    """Return the server that a tracker uses, according to the settings; "" if it writes local files."""
    if name == "wandb" and tracking.wandb == "online":
        return without_credentials(os.environ.get("WANDB_BASE_URL") or "api.wandb.ai")
    return ""


def without_credentials(text: str) -> str:
    """Return `text` with //user:password@host in any URI replaced by //host."""
    return _CREDENTIALS.sub("", text)


def check_tracking(tracking: Tracking) -> None:
    """Raise UsageError for a library that is not installed, and for settings that a tracker would refuse later."""
    for name in wanted(tracking):
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"{name} is not installed: pip install 'esper-ab[{name}]'")
    if len(tracking.wandb_project) > PROJECT_CHARS or set(NOT_IN_A_PROJECT) & set(tracking.wandb_project):
        raise UsageError(
            f"W&B project {tracking.wandb_project!r}: W&B allows at most {PROJECT_CHARS} characters and "
            f"none of {' '.join(NOT_IN_A_PROJECT)}"
        )
    for group, tags in tracking.tags.items():
        for tag in tags:
            if not 0 < len(tag) <= _TAG_CHARS:
                raise UsageError(f"tag {tag!r} of {group}: trackers accept 1 to {_TAG_CHARS} characters")
