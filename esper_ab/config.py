"""What was asked: the experiment and its groups. Validated once, frozen, every key known."""

from __future__ import annotations

from typing import Literal

from esper_ab.contracts.settings import Arithmetic, GroupSettings, NonNegativeInt, Positive, PositiveInt, Settings


class Group(Settings, frozen=True, kw_only=True):
    """One condition: a name and its fully resolved settings."""

    name: str
    settings: GroupSettings


class Experiment(Settings, frozen=True, kw_only=True):
    """The resolved experiment. Everything here is the same for every group, except what `groups` holds."""

    name: str
    groups: tuple[Group, ...]
    task: str = "digits"
    data_dir: str = ""
    slots: tuple[str, ...]  # network order
    n_envs: PositiveInt = 4
    episodes: PositiveInt = 3
    steps: PositiveInt = 25
    replicates: PositiveInt = 6
    eval_episodes: PositiveInt = 1
    rng_seed: NonNegativeInt = 0
    devices: tuple[str, ...]  # the pool, as plan names: "cpu:0", "cuda:1"
    devices_per_run: PositiveInt = 1
    placement: Literal["spread", "share", "alternate"] = "spread"
    sync: Literal["lockstep", "independent"] = "lockstep"
    unpaired: bool = False
    telemetry: bool = True
    margin: Positive = 2.0  # points: the smallest difference worth acting on
    arithmetic: Arithmetic = Arithmetic()
