"""Facts of played episodes, and what any reward would have paid for them. No host is trained here.

A reward is a function of facts, so one play serves every reward and every value of its constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from esper_ab.contracts.records import EnvEpisode
from esper_ab.contracts.settings import RewardSettings
from workers.arrays import Floats, Ints, flaw
from workers.facts import SeedFacts, StepFacts
from workers.reward_terms.potential import potential
from workers.user_rewards.lookup import RewardFunction

PLAYED_WITH = RewardSettings()  # the constants with which facts are recorded
Array = NDArray[Any]
Facts = TypeVar("Facts", StepFacts, SeedFacts)


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Episodes of E hosts: what became of them, and the facts of every step, [steps] of [E].

    The facts of a host that has diverged are filled up and mean nothing.
    """

    hosts: tuple[EnvEpisode, ...]
    steps: tuple[StepFacts, ...]

    def of(self, place: int, size: int) -> tuple[EnvEpisode, ...]:
        """Return the hosts of behaviour `place` where each behaviour has `size`."""
        return self.hosts[place * size : (place + 1) * size]


def kept(facts: StepFacts) -> StepFacts:
    """Return a copy that shares no array with the environments."""
    return _each_array((facts,), lambda arrays: arrays[0].copy())


def joined(parts: Sequence[Recorded]) -> Recorded:
    """Put episodes of equal length beside each other. Those of fewer steps, because all hosts diverged, are filled up.

    ValueError when every host diverged before its first decision.
    """
    whole = max((part.steps for part in parts), key=len)
    if not whole:
        raise ValueError("every host diverged in its first epoch: there is nothing to score")
    filled = [
        (*part.steps, *(_filling(step, len(part.hosts)) for step in whole[len(part.steps) :])) for part in parts
    ]
    return Recorded(
        hosts=tuple(host for part in parts for host in part.hosts),
        steps=tuple(_each_array(step, np.concatenate) for step in zip(*filled, strict=True)),
    )


def score(recorded: Recorded, reward: RewardFunction, settings: RewardSettings) -> Floats:
    """Return what a reward pays, [steps, E], with the penalty of a diverged host; 0 once a host has ended.

    The facts are those that environments with these settings would have given. ValueError for a reward that nobody can
    compute with.
    """
    done = np.array([host.steps for host in recorded.hosts])
    broken = np.array([host.failed for host in recorded.hosts])
    earned = np.zeros((len(recorded.steps), len(done)))
    for at, facts in enumerate(with_constants(recorded.steps, settings)):
        earned[at] = np.where(at < done, reward(facts, settings), 0.0)
        if wrong := flaw(earned[at]):
            raise ValueError(f"reward mode {settings.mode!r} {wrong} at step {at + 1}: {earned[at].tolist()}")
    ended = np.flatnonzero(broken & (done > 0))
    earned[done[ended] - 1, ended] += settings.divergence_penalty
    return earned


def with_constants(steps: Sequence[StepFacts], settings: RewardSettings) -> list[StepFacts]:
    """Return facts recorded with PLAYED_WITH as they are with other constants: potentials before, and the rent's base.

    All other facts are measurements and depend on no constant.
    """
    more_base = settings.base_slot_rent_ratio - PLAYED_WITH.base_slot_rent_ratio
    before: Floats = np.zeros_like(steps[0].seeds.potential_before)
    restated = []
    for facts in steps:
        live: Ints = facts.seeds.present.sum(axis=1)
        rent = facts.effective_seed_params + more_base * live * facts.host_params
        restated.append(
            replace(facts, seeds=replace(facts.seeds, potential_before=before), effective_seed_params=rent)
        )
        before = potential(facts.seeds, settings)
    return restated


def _filling(facts: StepFacts, count: int) -> StepFacts:
    """Return facts of `count` hosts that stand for none: those of the first host there is."""
    return _each_array((facts,), lambda arrays: np.repeat(arrays[0][:1], count, axis=0))


def _each_array(parts: Sequence[Facts], make: Callable[[Sequence[Array]], Array]) -> Facts:
    """Return facts whose arrays are made of those of `parts`, and whose other fields are those of the first."""
    changed: dict[str, Any] = {}
    for name, value in vars(parts[0]).items():
        values = [vars(part)[name] for part in parts]
        if isinstance(value, SeedFacts):
            changed[name] = _each_array(values, make)
        elif isinstance(value, np.ndarray):
            changed[name] = make(values)
    return replace(parts[0], **changed)
