"""Answers a reward-audit question: plays the behaviours once, scores them under every reward, and searches.

The search keeps the best behaviours so far and tries variations of them, round after round. All searches draw the same
random numbers, so two searches differ only in the score that they maximise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import torch

from esper_ab.contracts.records import EnvEpisode
from esper_ab.contracts.reward_audit import (
    AuditedReward,
    FoundBehaviour,
    Played,
    RewardAuditAnswer,
    RewardAuditQuestion,
    Scored,
    Varied,
)
from esper_ab.contracts.rng import RngPath, run_path
from esper_ab.contracts.settings import Arithmetic, GrowthSettings, RewardSettings
from workers.kinds.growth.bank.layer_chain import trains
from workers.kinds.growth.catalogues import blueprint_named
from workers.kinds.growth.datasets.behaviour import Behaviour, Behaviours
from workers.kinds.growth.datasets.task import Task
from workers.kinds.growth.environment import EnvSpec
from workers.kinds.growth.facts import Floats, StepFacts
from workers.kinds.growth.reward_audit.playing import PLAYED_WITH, Play, Recorded, player, score
from workers.kinds.growth.reward_lookup import RewardFunction, find_reward, rehearse
from workers.kinds.growth.samples import DeviceData
from workers.native import library
from workers.user_code.loading import load

_NOT_VARIED = {"mode", "params", "family", "gamma"}  # `mode` selects the reward; gamma must equal the learner's


def alternatives(settings: RewardSettings) -> Iterator[tuple[str, object, RewardSettings]]:
    """Yield (constant, current value, settings with a different value) for every switch and every non-zero number."""
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if name in _NOT_VARIED:
            continue
        if isinstance(value, bool):
            yield name, not value, msgspec.structs.replace(settings, **{name: not value})
        elif isinstance(value, int):
            for other_value in sorted({value // 2, value * 2} - {value}):
                yield name, other_value, msgspec.structs.replace(settings, **{name: other_value})
        elif value:
            for number in (value / 2, value * 2):
                yield name, number, msgspec.structs.replace(settings, **{name: number})


def varied(settings: RewardSettings, find_returns: Callable[[RewardSettings], Floats]) -> tuple[Varied, ...]:
    """Return the constants on which `find_returns` depends, or for which it raises ValueError."""
    returns_now = find_returns(settings)
    changes = []
    for name, other_value, changed_settings in alternatives(settings):
        value_before = _shown(getattr(settings, name))
        try:
            returns = find_returns(changed_settings)
        except ValueError:
            changes.append(Varied(constant=name, was=value_before, now=_shown(other_value), returns=()))
            continue
        if (returns != returns_now).any():
            changes.append(
                Varied(constant=name, was=value_before, now=_shown(other_value), returns=tuple(returns.tolist()))
            )
    return tuple(changes)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


_PARENTS = 4
_ROUND = 8  # behaviours tried before the parents are chosen again


def search(
    behaviours: Behaviours,
    start: Sequence[tuple[Behaviour, float]],
    tries: int,
    path: RngPath,
    grade: Callable[[Sequence[Behaviour]], Floats],
) -> tuple[Behaviour, float]:
    """Return the best behaviour among `start` and `tries` more, with its score by `grade`; if tied, the earlier one."""
    graded_behaviours = list(start)
    for round_begin in range(0, tries, _ROUND):
        best_behaviours = sorted(graded_behaviours, key=lambda pair: -pair[1])[:_PARENTS]  # stable
        children = []
        for number in range(round_begin, min(round_begin + _ROUND, tries)):
            rng = (path / number).generator()
            parent = best_behaviours[int(rng.integers(len(best_behaviours)))][0]
            children.append(behaviours.vary(f"search {number + 1}", parent, rng))
        graded_behaviours += zip(children, np.asarray(grade(children)).tolist(), strict=True)
    return max(graded_behaviours, key=lambda pair: pair[1])


_ACCURACY = RewardSettings(mode="accuracy")  # the search for the outcome itself maximises this; named in messages only


@dataclass(frozen=True, kw_only=True)
class _Loaded:
    asked: AuditedReward
    function: RewardFunction
    sha256: str


@dataclass(frozen=True, kw_only=True)
class _World:
    """The data that all rewards share."""

    question: RewardAuditQuestion
    offered: Behaviours
    behaviours: tuple[Behaviour, ...]  # reference behaviours, then random schedules
    play: Play
    recorded: Recorded

    def means(self, earned_rewards: Floats) -> Floats:
        """Return the mean return of each behaviour over its hosts, from rewards [steps, E]."""
        means: Floats = earned_rewards.sum(axis=0).reshape(-1, self.question.hosts).mean(axis=1)
        return means


def audit(question: RewardAuditQuestion, arithmetic: Arithmetic, data: DeviceData, task: Task) -> RewardAuditAnswer:
    """Answer a question. Raises a one-line ValueError that says what is impossible."""
    slots = _slots(question, task)
    rewards = [_load(reward, len(slots)) for reward in question.rewards]
    world = _world(question, arithmetic, data, task, slots)
    by_accuracy = _found(world, _last_accuracy, _ACCURACY) if question.searched else None
    behaviours = []
    for place, behaviour in enumerate(world.behaviours):
        kind: Literal["reference", "random"] = "random"
        if place < len(world.offered.reference):
            kind = "reference"
        hosts = world.recorded.hosts[place * question.hosts :][: question.hosts]
        behaviours.append(_played(behaviour, kind, hosts))
    return RewardAuditAnswer(
        arithmetic=arithmetic,
        torch_version=str(torch.__version__),
        slots=slots,
        behaviours=tuple(behaviours),
        scored=tuple(_scored(world, reward) for reward in rewards),
        found_by_accuracy=by_accuracy,
    )


def choose_arithmetic(growth: GrowthSettings, device: str) -> Arithmetic:
    """Return the arithmetic of `--kernel auto`: the widest kernel that can train such hosts on `device`, else torch."""
    chains = all(trains(blueprint_named(name)) for name in growth.blueprints)
    if device == "cpu" and growth.amp == "off" and chains:
        for kernel in library.kernels():
            if not kernel.problem:
                return Arithmetic(kernel=kernel.name, kernel_build=kernel.build)
    return Arithmetic()


def _load(request: AuditedReward, n_slots: int) -> _Loaded:
    """Return a reward's function; a user's function is also rehearsed on synthetic facts."""
    mode = request.settings.mode
    if ":" not in mode:
        return _Loaded(asked=request, function=find_reward(mode), sha256="")
    code = load(f"reward mode {mode!r}", mode.rpartition(":")[0])
    function = find_reward(mode, lambda subject, reference: code.module)
    rehearse(function, mode, n_slots)
    return _Loaded(asked=request, function=function, sha256=code.sha256)


def _slots(question: RewardAuditQuestion, task: Task) -> tuple[str, ...]:
    """Return the requested slots, by default all; ValueError unless they are slots of the task, in the task's order."""
    asked_slots = question.slots or task.slots
    if asked_slots != tuple(slot for slot in task.slots if slot in asked_slots):
        available_slots = ",".join(task.slots)
        raise ValueError(
            f"slots {','.join(asked_slots)}: task {task.name} has {available_slots}; name each once, in this order"
        )
    return asked_slots


def _world(
    question: RewardAuditQuestion, arithmetic: Arithmetic, data: DeviceData, task: Task, slots: tuple[str, ...]
) -> _World:
    behaviours_of_slots = Behaviours(slots)
    spec = EnvSpec(
        task=task,
        slots=slots,
        steps=question.steps,
        env_devices=(question.device,),
        growth=question.growth,
        reward=PLAYED_WITH,
        kernel=arithmetic.kernel,
    )
    path = run_path(question.rng_seed, 0) / "reward_audit"
    drawn_behaviours = [
        behaviours_of_slots.draw(f"random {number + 1}", (path / "schedule" / number).generator())
        for number in range(question.schedules)
    ]
    behaviours = (*behaviours_of_slots.reference, *drawn_behaviours)
    play = player(spec, data)
    return _World(
        question=question,
        offered=behaviours_of_slots,
        behaviours=behaviours,
        play=play,
        recorded=play(behaviours, question.hosts, path / "host"),
    )


def _scored(world: _World, reward: _Loaded) -> Scored:
    settings = reward.asked.settings
    earned_rewards = score(world.recorded, reward.function, settings)  # [steps, E]
    returns = earned_rewards.sum(axis=0).reshape(-1, world.question.hosts)
    magnitude = np.abs(earned_rewards)

    def returns_of(changed_settings: RewardSettings) -> Floats:
        return world.means(score(world.recorded, reward.function, changed_settings))

    best_search = None
    if world.question.searched:
        best_search = _found(world, reward.function, settings)
    return Scored(
        reward=reward.asked,
        sha256=reward.sha256,
        returns=tuple(map(tuple, returns.tolist())),
        by_step=tuple(magnitude.mean(axis=1).tolist()),
        largest=float(magnitude.max()),
        varied=varied(settings, returns_of),
        found=best_search,
    )


def _found(world: _World, function: RewardFunction, settings: RewardSettings) -> FoundBehaviour:
    """Search on the behaviours' hosts, starting from the random schedules; replay the result on different hosts."""
    question = world.question
    path = run_path(question.rng_seed, 0) / "reward_audit"

    def grade(behaviours: Sequence[Behaviour]) -> Floats:
        recording = world.play(behaviours, question.hosts, path / "host")
        return world.means(score(recording, function, settings))

    own_means = world.means(score(world.recorded, function, settings)).tolist()
    first_random = len(world.offered.reference)
    start = list(zip(world.behaviours[first_random:], own_means[first_random:], strict=True))
    best_behaviour, searched_return = search(world.offered, start, question.searched, path / "search", grade)
    second_recording = world.play([best_behaviour], question.hosts, path / "fresh host")
    returned_mean = score(second_recording, function, settings).sum(axis=0).mean()
    return FoundBehaviour(
        behaviour=_played(best_behaviour, "random", second_recording.hosts),
        returned=float(returned_mean),
        searched_return=searched_return,
        tried=question.searched,
    )


def _last_accuracy(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return validation accuracy at the last step as the reward: it is the outcome as far as a policy may know it."""
    if facts.step == facts.steps:
        return facts.val_acc
    return np.zeros(len(facts.op))


def _played(behaviour: Behaviour, kind: Literal["reference", "random"], hosts: Sequence[EnvEpisode]) -> Played:
    settings = behaviour.settings
    means = ("val_accuracy", "best_val_accuracy", "params_added", "fossilized", "contributing", "pruned")
    return Played(
        name=behaviour.name,
        words=behaviour.description,
        kind=kind,
        schedule=settings.schedule,
        controller=settings.name,
        held_out_accuracy=tuple(host.outcome for host in hosts if host.outcome is not None),
        diverged=sum(host.failed for host in hosts),
        **{name: float(np.mean([host.measures[name] or 0.0 for host in hosts])) for name in means},
    )
