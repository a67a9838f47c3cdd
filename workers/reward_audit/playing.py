"""Plays behaviours side by side on the same hosts, and records the facts of every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from esper_ab.contracts import catalog
from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats, Ints, int_zeros
from workers.controller import Controller
from workers.controllers.schedule import Schedule
from workers.datasets.behaviour import Behaviour
from workers.facts import StepFacts
from workers.growth.environment import DeviceData, EnvSpec, GrowthEnv
from workers.growth.rules.view import DecisionView
from workers.reward_audit.recorded import Recorded, joined, kept
from workers.run.episode import play
from workers.stopwatch import Stopwatch
from workers.vocabulary import HEADS

_NOTHING = Schedule(int_zeros((1, 0)), int_zeros((1, 0, len(HEADS))))

Play = Callable[[Sequence[Behaviour], int, RngPath], Recorded]


class SideBySide(Controller[DecisionView]):
    """Several controllers, each for environments [n] of its own."""

    def __init__(self, controllers: Sequence[tuple[Controller[DecisionView], Ints]]) -> None:
        self._controllers = controllers

    def begin_episode(self, n_envs: int) -> None:
        """Reset all of them."""
        for controller, _ in self._controllers:
            controller.begin_episode(n_envs)

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return decisions [E, head], every controller's for its own environments."""
        decisions = int_zeros(uniforms.shape)
        for controller, own in self._controllers:
            decisions[own] = controller.decide(view, uniforms)[own]
        return decisions


def player(spec: EnvSpec, data: DeviceData, together: int = 16) -> Play:
    """Return `play(behaviours, hosts, path)`: each behaviour grows the same hosts, host i of them at `path`/i.

    `spec` has one environment, whose device the hosts are on. `together`: behaviours that share a bank, whose
    calls then serve many hosts. ValueError when a behaviour cannot be played here.
    """
    (device,) = spec.env_devices

    def play_all(behaviours: Sequence[Behaviour], hosts: int, path: RngPath) -> Recorded:
        chunks = [behaviours[at : at + together] for at in range(0, len(behaviours), together)]
        wide = [replace(spec, env_devices=(device,) * (hosts * len(chunk))) for chunk in chunks]
        return joined([_play(one, {device: data}, chunk, path) for one, chunk in zip(wide, chunks, strict=True)])

    return play_all


def _play(spec: EnvSpec, data: dict[str, DeviceData], behaviours: Sequence[Behaviour], path: RngPath) -> Recorded:
    hosts = len(spec.env_devices) // len(behaviours)
    env = GrowthEnv(spec, data, Stopwatch())
    paths = [path / host for _ in behaviours for host in range(hosts)]
    steps: list[StepFacts] = []

    def keep(facts: StepFacts) -> Floats:
        steps.append(kept(facts))
        return np.zeros(len(facts.op))

    result = play(env, paths, _side_by_side(behaviours, hosts, spec), {"kept": keep}, Stopwatch(), lambda _step: None)
    return Recorded(hosts=result.envs, steps=tuple(steps))


def _side_by_side(behaviours: Sequence[Behaviour], hosts: int, spec: EnvSpec) -> SideBySide:
    """Return one controller for all: their schedules as one, whose cost does not grow with their number."""
    made = [_controller(behaviour, spec) for behaviour in behaviours]
    scheduled = Schedule.side_by_side(
        [one if isinstance(one, Schedule) else _NOTHING for one in made], hosts
    )
    envs = np.arange(len(made) * hosts)
    own = [envs[place * hosts : (place + 1) * hosts] for place in range(len(made))]
    others = [(one, rows) for one, rows in zip(made, own, strict=True) if not isinstance(one, Schedule)]
    return SideBySide([(scheduled, envs), *others])


def _controller(behaviour: Behaviour, spec: EnvSpec) -> Controller[DecisionView]:
    settings = behaviour.settings
    try:
        make = catalog.entry("workers.controllers", settings.name, "make")
        controller: Controller[DecisionView] = make(settings, spec.slots, spec.growth.blueprints)
    except ValueError as error:
        raise ValueError(f"behaviour {behaviour.name!r}: {error}") from None
    return controller
