"""Which trackers follow a run, and what they would refuse, checked before anything starts. Loads none of them."""

from __future__ import annotations

import importlib.util
import os
import re
from typing import Literal

import msgspec

from esper_ab.contracts.errors import UsageError

Name = Literal["wandb", "tensorboard"]
NAMES: tuple[Name, ...] = ("wandb", "tensorboard")
PROJECT_CHARS = 128  # what W&B takes as the name of a project, and what it does not take in it
NOT_IN_A_PROJECT = "/\\#?%:"
_TAG_CHARS = 64  # what W&B takes
_CREDENTIALS = re.compile(r"(?<=//)[^/?#\s'\"]*@")


class Tracking(msgspec.Struct, frozen=True, kw_only=True):
    """Trackers that follow an experiment; no result depends on them, so they are not part of the plan's digest."""

    wandb: Literal["off", "online", "offline"] = "off"
    #: The team or user at Weights & Biases; "" is the one that wandb is logged in as.
    wandb_entity: str = ""
    #: "" is ``ab_test_{name}_{date}``.
    wandb_project: str = ""
    tensorboard: bool = False
    description: str = ""
    #: The tags of every variant, by group.
    tags: dict[str, tuple[str, ...]] = {}

    @property
    def anything(self) -> bool:
        """Whether any tracker is wanted."""
        return self.wandb != "off" or self.tensorboard


def wanted(tracking: Tracking) -> tuple[Name, ...]:
    """Names of the trackers that are asked for."""
    asked = {"wandb": tracking.wandb != "off", "tensorboard": tracking.tensorboard}
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
    return ""


def without_credentials(text: str) -> str:
    """Return `text` without what a URI in it says of a user: //host in the place of //user:password@host."""
    return _CREDENTIALS.sub("", text)


def check_tracking(tracking: Tracking) -> None:
    """UsageError for a library that is not installed, and for what a tracker would refuse later."""
    for name in wanted(tracking):
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"{name} is not installed: pip install 'esper-ab[{name}]'")
    if len(tracking.wandb_project) > PROJECT_CHARS or set(NOT_IN_A_PROJECT) & set(tracking.wandb_project):
        raise UsageError(f"W&B project {tracking.wandb_project!r}: W&B takes {PROJECT_CHARS} characters at most, and "
                         f"none of {' '.join(NOT_IN_A_PROJECT)}")  # fmt: skip
    for group, tags in tracking.tags.items():
        for tag in tags:
            if not 0 < len(tag) <= _TAG_CHARS:
                raise UsageError(f"tag {tag!r} of {group}: 1 to {_TAG_CHARS} characters, which is what trackers take")
