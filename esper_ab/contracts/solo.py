"""What `esper-ab heuristic` asks the data plane, and what comes back: a controller alone, compared with nobody."""

from __future__ import annotations

from esper_ab.contracts.settings import NonNegativeInt, PositiveInt, Settings


class SoloQuestion(Settings, frozen=True, kw_only=True):
    """Which hosts the heuristic is to grow."""

    task: str
    data_dir: str  # "": the task's own default
    slots: tuple[str, ...]  # empty: all of the task
    episodes: PositiveInt
    steps: PositiveInt  # host epochs, and decisions, per episode
    n_envs: PositiveInt  # hosts per episode
    rng_seed: NonNegativeInt
    device: str  # torch device of the hosts


class Seed(Settings, frozen=True, kw_only=True):
    """One life in one slot."""

    slot: str
    blueprint: str
    germinated: int  # step, from 1
    advanced: int  # how often
    end: str  # "fossilized", "pruned", or "" when it was under way at the end of the episode
    end_step: int | None
    contribution: float | None  # points, last measured


class Host(Settings, frozen=True, kw_only=True):
    """One host, grown from nothing for one episode."""

    episode: int
    env: int
    seeds: tuple[Seed, ...]  # in the order of their germination
    final_accuracy: float  # percent, held out
    params_added: int
    settled_step: int | None  # when the stabilisation latch opened; None: never
    unsettled_steps: int  # steps without a live seed at which the latch was still closed
    improving_steps: int  # steps without a live seed at which it was open and there was no plateau
    diverged: bool


class SoloAnswer(Settings, frozen=True, kw_only=True):
    """What came of it."""

    slots: tuple[str, ...]
    hosts: tuple[Host, ...]
