"""Question and answer of `esper-ab growth rewards` and the data plane, which scores rewards before any training.

The answer and its question are saved to a file, and become part of a plan that includes them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from esper_ab.contracts.plain_values import LARGEST
from esper_ab.contracts.records import Count, Number
from esper_ab.contracts.settings import (
    Arithmetic,
    GrowthSettings,
    NonNegativeInt,
    PositiveInt,
    RewardSettings,
    Settings,
)

SCHEMA = 2


class AuditedReward(Settings, frozen=True, kw_only=True):
    """A reward to audit."""

    name: str  # for tables: its mode, or a group's name
    settings: RewardSettings


class RewardAuditQuestion(Settings, frozen=True, kw_only=True):
    """The behaviours to play, and the rewards that score them."""

    task: str = "digits"
    data_dir: str = ""  # "": the task's own default
    slots: tuple[str, ...] = ()  # empty: all of the task's
    rewards: tuple[AuditedReward, ...]
    steps: Annotated[int, Meta(ge=2, le=LARGEST)] = 25  # host epochs, and decisions, per episode
    schedules: Annotated[int, Meta(ge=2, le=LARGEST)] = 64  # random schedules
    hosts: PositiveInt = 2  # per behaviour; the same hosts for all
    searched: NonNegativeInt = 48  # behaviours to try per reward in the search; 0: no search
    growth: GrowthSettings = GrowthSettings()
    rng_seed: NonNegativeInt = 0
    device: str = "cpu"  # torch device of the hosts
    arithmetic: Arithmetic | None = None  # None: the kernel if available, else torch


class Played(Settings, frozen=True, kw_only=True):
    """A behaviour and its results: `held_out_accuracy` in percent per host, other numbers as means over hosts."""

    name: str
    words: str  # description of the behaviour
    kind: Literal["reference", "random"]
    schedule: tuple[str, ...]  # in the schedule controller's notation; empty if another controller played
    controller: str
    held_out_accuracy: tuple[Number, ...]
    val_accuracy: Number  # at the end, percent
    best_val_accuracy: Number  # of the episode, percent
    params_added: Number
    fossilized: Number
    contributing: Number
    pruned: Number
    diverged: Count  # hosts


class Varied(Settings, frozen=True, kw_only=True):
    """The effect of changing one constant of a reward. Constants that affect no return are not listed."""

    constant: str  # a key of `reward`
    was: str
    now: str
    returns: tuple[Number, ...]  # by behaviour, mean over hosts; empty if the reward refuses this value


class FoundBehaviour(Settings, frozen=True, kw_only=True):
    """The best behaviour that a short search found for a reward, replayed on hosts that the search did not use."""

    behaviour: Played
    returned: Number  # on the hosts of the replay
    searched_return: Number  # on the hosts of the search
    tried: Count  # number of behaviours, not counting the random schedules that the search started from


class Scored(Settings, frozen=True, kw_only=True):
    """The scores of all behaviours under one reward."""

    reward: AuditedReward
    sha256: str  # of a user's code; "" for a mode of the catalogue
    returns: tuple[tuple[Number, ...], ...]  # by behaviour and host: sums over an episode
    by_step: tuple[Number, ...]  # mean magnitude of the reward by step, over all hosts
    largest: Number  # magnitude of the largest reward of one step
    varied: tuple[Varied, ...]
    found: FoundBehaviour | None  # None if there was no search


class RewardAuditAnswer(Settings, frozen=True, kw_only=True):
    """The results of a reward audit."""

    arithmetic: Arithmetic  # of the hosts
    torch_version: str
    slots: tuple[str, ...]  # where a seed module may grow, in network order
    behaviours: tuple[Played, ...]  # reference behaviours first
    scored: tuple[Scored, ...]  # in the order of the question
    found_by_accuracy: FoundBehaviour | None  # by the same search, which maximised validation accuracy at the end


class RewardAudit(Settings, frozen=True, kw_only=True):
    """A saved reward audit: an answer, its question, and the state of the code."""

    schema: Count
    digest: str  # sha256 of question, arithmetic, versions, and code of the project and of users
    question: RewardAuditQuestion
    sources: str  # hash of the installed sources
    answer: RewardAuditAnswer
