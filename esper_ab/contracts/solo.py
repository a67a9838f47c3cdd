"""Question about one controller without a comparison, and the data plane's answer."""

from __future__ import annotations

from esper_ab.contracts.settings import (
    HostKernel,
    NonNegativeInt,
    PositiveInt,
    Settings,
)


class SoloQuestion(Settings, frozen=True, kw_only=True):
    """The hosts that `growth heuristic` should grow."""

    task: str
    data_dir: str  # "": the task's own default
    slots: tuple[str, ...]  # empty: all of the task's
    episodes: PositiveInt
    steps: PositiveInt  # host epochs, and decisions, per episode
    n_envs: PositiveInt  # hosts per episode
    rng_seed: NonNegativeInt
    device: str  # torch device of the hosts


class Seed(Settings, frozen=True, kw_only=True):
    """The life of one seed module in one slot."""

    slot: str
    blueprint: str
    germinated: int  # step, from 1
    advanced: int  # number of times
    end: str  # "fossilized", "pruned", or "" if still alive at the end of the episode
    end_step: int | None
    contribution: float | None  # points, last measured


class Host(Settings, frozen=True, kw_only=True):
    """One host, grown from scratch in one episode."""

    episode: int
    env: int
    seeds: tuple[Seed, ...]  # in the order of their germination
    held_out_accuracy: float  # percent, held out
    params_added: int
    settled_step: int | None  # step at which the stabilisation latch opened; None: never
    unsettled_steps: int  # steps without a live seed module while the latch was closed
    improving_steps: int  # steps without a live seed module while the latch was open, but without a plateau
    diverged: bool


class SoloAnswer(Settings, frozen=True, kw_only=True):
    """The hosts that the heuristic controller grew."""

    slots: tuple[str, ...]
    kernel: HostKernel  # what trained them
    hosts: tuple[Host, ...]
