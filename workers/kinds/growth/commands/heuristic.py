"""`python -m workers.kinds.growth.commands.heuristic`: run the heuristic controller alone and report every seed's life.

The question (one JSON line on stdin) and the answer are structs of esper_ab.contracts.children. The hosts are those on
which an experiment with the same rng seed evaluates its first replicate. They are trained by the kernel that
`--kernel auto` chooses. After an error, the exit status is 2 and stderr has one line.
"""

from __future__ import annotations

import sys

import msgspec
import numpy as np

from esper_ab.contracts.records import EnvEpisode, SeedEvent
from esper_ab.contracts.rng import run_path
from esper_ab.contracts.settings import Arithmetic, ControllerSettings, GrowthSettings, RewardSettings
from esper_ab.contracts.solo import Host, Seed, SoloAnswer, SoloQuestion
from workers.arrays import Floats, Ints, int_zeros
from workers.commands.answering import answer_stdin
from workers.devices.by_torch import device_here, pin
from workers.environments import Controller, Stopwatch, paths_below
from workers.kinds.growth.catalogues import task_named
from workers.kinds.growth.controllers import heuristic
from workers.kinds.growth.datasets.task import Task
from workers.kinds.growth.environment import EnvSpec, GrowthEnv
from workers.kinds.growth.reward_audit.scoring import choose_arithmetic
from workers.kinds.growth.rules.masks import DecisionView
from workers.kinds.growth.samples import DeviceData
from workers.kinds.growth.vocabulary import Stage
from workers.run.episode import play


class _Watched(Controller[DecisionView]):
    """The heuristic controller, counting the conditions that prevented germination."""

    def __init__(self, watched_controller: Controller[DecisionView]) -> None:
        self._watched = watched_controller

    def begin_episode(self, n_envs: int) -> None:
        self._watched.begin_episode(n_envs)
        self.settled = int_zeros(n_envs)  # step; 0: not yet
        self.unsettled = int_zeros(n_envs)  # steps
        self.improving = int_zeros(n_envs)  # steps

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        latched_mask = view.signals.stabilized
        live_mask = (view.table.present & (view.table.stage != Stage.FOSSILIZED)).any(axis=1)
        free_mask = view.alive & ~live_mask & view.table.available.any(axis=1)
        self.settled = np.where(latched_mask & (self.settled == 0), view.step, self.settled)
        self.unsettled += free_mask & ~latched_mask
        self.improving += free_mask & latched_mask & (view.signals.plateau_epochs < heuristic.PLATEAU_EPOCHS)
        return self._watched.decide(view, uniforms)


def grow(question: SoloQuestion) -> SoloAnswer:
    """Grow the hosts of all episodes.

    Raises ValueError, KeyError or OSError; the message says what is impossible.
    """
    task = task_named(question.task)
    slots = _slots(question.slots, task)
    growth = GrowthSettings()
    data = {question.device: DeviceData.of(task.load(question.data_dir), device_here(question.device))}
    spec = EnvSpec(
        task=task,
        slots=slots,
        steps=question.steps,
        env_devices=(question.device,) * question.n_envs,
        growth=growth,
        reward=RewardSettings(),
        kernel=choose_arithmetic(growth, question.device).kernel,
    )
    env = GrowthEnv(spec, data, Stopwatch())
    decider = _Watched(heuristic.make(ControllerSettings(name="heuristic"), slots, growth.blueprints))
    hosts: list[Host] = []
    for episode in range(question.episodes):
        paths = paths_below(run_path(question.rng_seed, 0, "") / "evaluate" / episode, env.n_envs)
        result = play(env, paths, decider, {}, Stopwatch(), lambda _step: None)
        hosts += [_host(episode, outcome, env.events, decider) for outcome in result.envs]
    return SoloAnswer(slots=slots, kernel=spec.kernel, hosts=tuple(hosts))


def _slots(asked_slots: tuple[str, ...], task: Task) -> tuple[str, ...]:
    unknown_slots = [slot for slot in asked_slots if slot not in task.slots]
    if unknown_slots:
        raise ValueError(f"no slot {unknown_slots[0]!r} in task {task.name}; it has {', '.join(task.slots)}")
    ordered_slots = tuple(slot for slot in task.slots if slot in asked_slots)
    if asked_slots != ordered_slots:
        raise ValueError(
            f"--slots {' '.join(asked_slots)}: name each once, in network order: --slots {' '.join(ordered_slots)}"
        )
    return asked_slots or task.slots


def _host(episode: int, outcome: EnvEpisode, events: list[SeedEvent], watcher: _Watched) -> Host:
    i = outcome.env
    assert outcome.outcome is not None, "every host has an outcome"
    return Host(
        episode=episode,
        env=i,
        seeds=_seeds([event for event in events if event.env == i]),
        held_out_accuracy=outcome.outcome,
        params_added=int(outcome.measures["params_added"] or 0),
        settled_step=int(watcher.settled[i]) or None,
        unsettled_steps=int(watcher.unsettled[i]),
        improving_steps=int(watcher.improving[i]),
        diverged=outcome.failed,
    )


def _seeds(events: list[SeedEvent]) -> tuple[Seed, ...]:
    """Group the events of one host into seeds."""
    lives: dict[str, list[SeedEvent]] = {}
    for event in events:
        if event.event != "emptied":
            lives.setdefault(event.seed_id, []).append(event)
    return tuple(map(_seed, lives.values()))


def _seed(events: list[SeedEvent]) -> Seed:
    birth = events[0]
    last_event = events[-1]
    end = ""
    end_step = None
    if last_event.event in ("fossilized", "pruned"):
        end = last_event.event
        end_step = last_event.step
    return Seed(
        slot=birth.slot,
        blueprint=birth.blueprint,
        germinated=birth.step,
        advanced=sum(event.event == "advanced" for event in events),
        end=end,
        end_step=end_step,
        contribution=last_event.contribution,
    )


if __name__ == "__main__":
    pin(Arithmetic())
    sys.exit(answer_stdin(grow, msgspec.json.Decoder(SoloQuestion)))
