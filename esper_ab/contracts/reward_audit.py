"""Question and answer of `esper-ab growth rewards` and the data plane: rewards scored before anything trains.

The answer, with what it was made from, is the file that is kept, and part of the plan that includes it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from esper_ab.contracts.settings import (
    LARGEST,
    Arithmetic,
    GrowthSettings,
    NonNegativeInt,
    PositiveInt,
    RewardSettings,
    Settings,
)

SCHEMA = 2


class AuditedReward(Settings, frozen=True, kw_only=True):
    """A reward to be audited."""

    name: str  # for tables: its mode, or a group's name
    settings: RewardSettings


class RewardAuditQuestion(Settings, frozen=True, kw_only=True):
    """What is to be played, and which rewards score it."""

    task: str = "digits"
    data_dir: str = ""  # "": the task's own default
    slots: tuple[str, ...] = ()  # empty: all of the task
    rewards: tuple[AuditedReward, ...]
    steps: Annotated[int, Meta(ge=2, le=LARGEST)] = 25  # host epochs, and decisions, per episode
    schedules: Annotated[int, Meta(ge=2, le=LARGEST)] = 64  # random ones
    hosts: PositiveInt = 2  # of each behaviour; the same hosts for all
    searched: NonNegativeInt = 48  # behaviours that the search tries for each reward; 0: no search
    growth: GrowthSettings = GrowthSettings()
    rng_seed: NonNegativeInt = 0
    device: str = "cpu"  # torch device of the hosts
    arithmetic: Arithmetic | None = None  # None: by the kernel where it can be had, else torch


class Played(Settings, frozen=True, kw_only=True):
    """A behaviour and what became of its hosts. Per host: `held_out_accuracy`, percent; else means."""

    name: str
    words: str  # what it does
    kind: Literal["reference", "random"]
    schedule: tuple[str, ...]  # as a controller takes it; empty when another controller played
    controller: str
    held_out_accuracy: tuple[float, ...]
    val_accuracy: float  # at the end, percent
    best_val_accuracy: float  # of the episode, percent
    params_added: float
    fossilized: float
    contributing: float
    pruned: float
    diverged: int  # hosts


class Varied(Settings, frozen=True, kw_only=True):
    """One constant of a reward altered, all else as it was; only those on which a return depends are listed."""

    constant: str  # a key of `reward`
    was: str
    now: str
    returns: tuple[float, ...]  # by behaviour, mean over hosts; empty when the reward refuses this value


class FoundBehaviour(Settings, frozen=True, kw_only=True):
    """What a short search found that maximises a reward, grown again on hosts that the search did not see."""

    behaviour: Played
    returned: float  # on those hosts
    searched_return: float  # on the hosts of the search
    tried: int  # behaviours, without the random schedules it started from


class Scored(Settings, frozen=True, kw_only=True):
    """One reward on all behaviours."""

    reward: AuditedReward
    sha256: str  # of a user's code; "" for a mode of the catalogue
    returns: tuple[tuple[float, ...], ...]  # by behaviour and host: sums over an episode
    by_step: tuple[float, ...]  # mean magnitude of the reward by step, over all hosts
    largest: float  # magnitude of the largest reward of one step
    varied: tuple[Varied, ...]
    found: FoundBehaviour | None  # None without a search


class RewardAuditAnswer(Settings, frozen=True, kw_only=True):
    """All that was played and scored."""

    arithmetic: Arithmetic  # of the hosts
    torch_version: str
    slots: tuple[str, ...]  # that may grow, by name, in network order
    behaviours: tuple[Played, ...]  # reference behaviours first
    scored: tuple[Scored, ...]  # in the order of the question
    found_by_accuracy: FoundBehaviour | None  # by the same search for validation accuracy at the end


class RewardAudit(Settings, frozen=True, kw_only=True):
    """What is kept: an answer, its question, and the state of the code."""

    schema: int
    digest: str  # sha256 of question, arithmetic, versions, and code of the project and of users
    question: RewardAuditQuestion
    sources: str  # hash of the installed sources
    answer: RewardAuditAnswer
