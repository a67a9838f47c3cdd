"""Plays behaviours side by side on the same hosts, records the facts of every step, and scores them by any reward.

A reward is a function of facts, so one recording serves every reward and all values of its constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from esper_ab.contracts.records import EnvEpisode
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import RewardSettings
from workers.arrays import Floats, Ints, flaw, int_zeros
from workers.environments import Controller, Stopwatch
from workers.kinds.growth.catalogues import controller_maker
from workers.kinds.growth.controllers.schedule import Schedule
from workers.kinds.growth.datasets.behaviour import Behaviour
from workers.kinds.growth.environment import EnvSpec, GrowthEnv
from workers.kinds.growth.facts import SeedFacts, StepFacts
from workers.kinds.growth.reward_lookup import RewardFunction
from workers.kinds.growth.reward_terms import potential
from workers.kinds.growth.rules.masks import DecisionView
from workers.kinds.growth.samples import DeviceData
from workers.kinds.growth.vocabulary import HEADS
from workers.run.episode import play

PLAYED_WITH = RewardSettings()  # the constants with which facts are recorded
Array = NDArray[Any]
Facts = TypeVar("Facts", StepFacts, SeedFacts)


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Episodes of E hosts: how they ended, and the facts of every step, [steps] of [E].

    Facts of a diverged host are padding without meaning.
    """

    hosts: tuple[EnvEpisode, ...]
    steps: tuple[StepFacts, ...]


def joined(parts: Sequence[Recorded]) -> Recorded:
    """Concatenate episodes along the hosts. Episodes that stopped early, because all hosts diverged, are padded.

    ValueError if every host diverged before its first decision.
    """
    longest_steps = max((part.steps for part in parts), key=len)
    if not longest_steps:
        raise ValueError("every host diverged in its first epoch: there is nothing to score")
    hosts = list[EnvEpisode]()
    filled_steps = []
    for part in parts:
        hosts += part.hosts
        missing_steps = longest_steps[len(part.steps) :]
        filled_steps.append((*part.steps, *(_filling(step, len(part.hosts)) for step in missing_steps)))
    steps = tuple(_each_array(step, np.concatenate) for step in zip(*filled_steps, strict=True))
    return Recorded(hosts=tuple(hosts), steps=steps)


def score(recording: Recorded, reward: RewardFunction, settings: RewardSettings) -> Floats:
    """Return rewards [steps, E], including the penalty of a diverged host; 0 once a host's episode has ended.

    The facts are those that environments with these settings would have given. ValueError if a reward is not finite or
    too large.
    """
    end_steps = np.array([host.steps for host in recording.hosts])
    diverged_mask = np.array([host.failed for host in recording.hosts])
    earned_rewards = np.zeros((len(recording.steps), len(end_steps)))
    for step, facts in enumerate(with_constants(recording.steps, settings)):
        earned_rewards[step] = np.where(step < end_steps, reward(facts, settings), 0.0)
        if flaw_words := flaw(earned_rewards[step]):
            raise ValueError(
                f"reward mode {settings.mode!r} {flaw_words} at step {step + 1}: {earned_rewards[step].tolist()}"
            )
    diverged_envs = np.flatnonzero(diverged_mask & (end_steps > 0))
    earned_rewards[end_steps[diverged_envs] - 1, diverged_envs] += settings.divergence_penalty
    return earned_rewards


def with_constants(steps: Sequence[StepFacts], settings: RewardSettings) -> list[StepFacts]:
    """Return facts recorded with PLAYED_WITH as they would be with different constants.

    Only `potential_before` and the base of the rent change, because all other facts are measurements and depend on no
    constant.
    """
    more_base = settings.base_slot_rent_ratio - PLAYED_WITH.base_slot_rent_ratio
    potential_before: Floats = np.zeros_like(steps[0].seeds.potential_before)
    restated_steps = []
    for facts in steps:
        live_seeds: Ints = facts.seeds.present.sum(axis=1)
        rent = facts.effective_seed_params + more_base * live_seeds * facts.host_params
        seeds = replace(facts.seeds, potential_before=potential_before)
        restated_steps.append(replace(facts, seeds=seeds, effective_seed_params=rent))
        potential_before = potential(facts.seeds, settings)
    return restated_steps


def _filling(facts: StepFacts, count: int) -> StepFacts:
    """Return padding facts for `count` hosts: copies of the first host's."""
    return _each_array((facts,), lambda arrays: np.repeat(arrays[0][:1], count, axis=0))


def _each_array(parts: Sequence[Facts], make: Callable[[Sequence[Array]], Array]) -> Facts:
    """Return facts that combine the arrays of `parts` and take all other fields from the first."""
    changed_arrays: dict[str, Any] = {}
    for name, value in vars(parts[0]).items():
        values = [vars(part)[name] for part in parts]
        if isinstance(value, SeedFacts):
            changed_arrays[name] = _each_array(values, make)
        elif isinstance(value, np.ndarray):
            changed_arrays[name] = make(values)
    return replace(parts[0], **changed_arrays)


_NOTHING = Schedule(int_zeros((1, 0)), int_zeros((1, 0, len(HEADS))))

Play = Callable[[Sequence[Behaviour], int, RngPath], Recorded]


class SideBySide(Controller[DecisionView]):
    """Several controllers, each with its own environments [n]."""

    def __init__(self, controllers: Sequence[tuple[Controller[DecisionView], Ints]]) -> None:
        self._controllers = controllers

    def begin_episode(self, n_envs: int) -> None:
        """Reset all controllers."""
        for controller, _ in self._controllers:
            controller.begin_episode(n_envs)

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return decisions [E, head]; each controller decides for its own environments."""
        decisions = int_zeros(uniforms.shape)
        for controller, own_envs in self._controllers:
            decisions[own_envs] = controller.decide(view, uniforms)[own_envs]
        return decisions


def player(spec: EnvSpec, data: DeviceData, chunk_size: int = 16) -> Play:
    """Return `play(behaviours, hosts, path)`: each behaviour grows the same hosts; host i is drawn at `path`/i.

    `spec` has one environment, whose device holds the hosts. `chunk_size`: number of behaviours that share a bank, so
    that each of its calls serves many hosts. Raises ValueError if a behaviour cannot be played here.
    """
    (device,) = spec.env_devices

    def play_all(behaviours: Sequence[Behaviour], hosts: int, path: RngPath) -> Recorded:
        parts = []
        for begin in range(0, len(behaviours), chunk_size):
            chunk = behaviours[begin : begin + chunk_size]
            wide_spec = replace(spec, env_devices=(device,) * (hosts * len(chunk)))
            parts.append(_play(wide_spec, {device: data}, chunk, path))
        return joined(parts)

    return play_all


def _play(spec: EnvSpec, data: dict[str, DeviceData], behaviours: Sequence[Behaviour], path: RngPath) -> Recorded:
    hosts = len(spec.env_devices) // len(behaviours)
    env = GrowthEnv(spec, data, Stopwatch())
    paths = [path / host for host in range(hosts)] * len(behaviours)
    steps: list[StepFacts] = []

    def keep_facts(facts: StepFacts) -> Floats:
        steps.append(_each_array((facts,), lambda arrays: arrays[0].copy()))  # shares no array with the environments
        return np.zeros(len(facts.op))

    decider = _side_by_side(behaviours, hosts, spec)
    result = play(env, paths, decider, {"kept": keep_facts}, Stopwatch(), lambda _step: None)
    return Recorded(hosts=result.envs, steps=tuple(steps))


def _side_by_side(behaviours: Sequence[Behaviour], hosts: int, spec: EnvSpec) -> SideBySide:
    """Return one controller for all. Schedules are merged into one, at a cost that does not depend on their number."""
    envs = np.arange(len(behaviours) * hosts)
    schedules = list[Schedule]()
    controllers = list[tuple[Controller[DecisionView], Ints]]()
    for place, behaviour in enumerate(behaviours):
        controller = _controller(behaviour, spec)
        if isinstance(controller, Schedule):
            schedules.append(controller)
        else:
            schedules.append(_NOTHING)
            controllers.append((controller, envs[place * hosts : (place + 1) * hosts]))
    return SideBySide([(Schedule.side_by_side(schedules, hosts), envs), *controllers])


def _controller(behaviour: Behaviour, spec: EnvSpec) -> Controller[DecisionView]:
    settings = behaviour.settings
    try:
        make = controller_maker(settings.name)
        controller: Controller[DecisionView] = make(settings, spec.slots, spec.growth.blueprints)
    except ValueError as error:
        raise ValueError(f"behaviour {behaviour.name!r}: {error}") from None
    return controller
