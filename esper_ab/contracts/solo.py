"""Questions about one controller alone, or about saved policies, without a comparison; and the data plane's answers."""

from __future__ import annotations

from typing import Any

from esper_ab.contracts.settings import HostKernel, NonNegativeInt, PositiveInt, Settings


class SoloQuestion(Settings, frozen=True, kw_only=True):
    """The hosts that the heuristic is to grow."""

    task: str
    data_dir: str  # "": the task's own default
    slots: tuple[str, ...]  # empty: all of the task
    episodes: PositiveInt
    steps: PositiveInt  # host epochs, and decisions, per episode
    n_envs: PositiveInt  # hosts per episode
    rng_seed: NonNegativeInt
    device: str  # torch device of the hosts


class Seed(Settings, frozen=True, kw_only=True):
    """The life of one seed in one slot."""

    slot: str
    blueprint: str
    germinated: int  # step, from 1
    advanced: int  # number of times
    end: str  # "fossilized", "pruned", or "" when still alive at the end of the episode
    end_step: int | None
    contribution: float | None  # points, last measured


class Host(Settings, frozen=True, kw_only=True):
    """One host, grown from scratch in one episode."""

    episode: int
    env: int
    seeds: tuple[Seed, ...]  # in the order of their germination
    held_out_accuracy: float  # percent, held out
    params_added: int
    settled_step: int | None  # when the stabilisation latch opened; None: never
    unsettled_steps: int  # steps without a live seed at which the latch was still closed
    improving_steps: int  # steps without a live seed at which the latch was open and there was no plateau
    diverged: bool


class SoloAnswer(Settings, frozen=True, kw_only=True):
    """The hosts that were grown."""

    slots: tuple[str, ...]
    kernel: HostKernel  # what trained them
    hosts: tuple[Host, ...]


class PoliciesQuestion(Settings, frozen=True, kw_only=True):
    """The policies that `esper-ab evaluate` is to play."""

    policies: tuple[str, ...]
    eval_episodes: PositiveInt | None  # None: as many as in the run
    rng_seed: NonNegativeInt | None  # None: the run's own
    device: str  # torch device of the environments
    importable: tuple[str, ...]  # modules that a policy's task may import


class PoliciesAnswer(Settings, frozen=True, kw_only=True):
    """A row, and a line that says the same, for every policy and kind of action."""

    rows: tuple[dict[str, Any], ...]
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
