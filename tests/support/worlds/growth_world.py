"""A stand-in for the network, without tensors, on which whole episodes can be played."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from esper_ab.contracts.records import SeedEvent
from workers.kinds.growth.controllers.random import choose
from workers.kinds.growth.rules.lifecycle import Lifecycle
from workers.kinds.growth.rules.masks import DecisionMasks, DecisionView, Rules
from workers.kinds.growth.rules.observe import observe
from workers.kinds.growth.rules.tracker import Measurement, Signals
from workers.kinds.growth.vocabulary import HEADS, Algorithm, Stage

SLOTS = ("early", "mid", "late")
BLUEPRINTS = ("norm", "conv_light", "conv_heavy")


@dataclass
class NumberGraft:
    """A network that only records which slots hold a module, and refuses impossible changes."""

    modules: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # (blueprint, algorithm)
    broken: bool = False  # the next germination fails

    def params(self, env: int, slot: int) -> int:
        blueprint, algorithm = self.modules[env, slot]
        return 100 * (blueprint + 1) + (7 if algorithm == Algorithm.GATE else 0)

    def germinate(self, env: int, slot: int, blueprint_index: int, algorithm: int) -> int:
        if self.broken:
            raise RuntimeError("no memory for a module")
        assert (env, slot) not in self.modules
        self.modules[env, slot] = (blueprint_index, algorithm)
        return self.params(env, slot)

    def set_algorithm(self, env: int, slot: int, algorithm: int) -> int:
        self.modules[env, slot] = (self.modules[env, slot][0], algorithm)
        return self.params(env, slot)

    def drop(self, env: int, slot: int) -> None:
        del self.modules[env, slot]


def make_lifecycle(n_envs: int = 1, steps: int = 25, gates: str = "permissive", max_seeds: int = 0) -> Lifecycle:
    return Lifecycle(n_envs, SLOTS, BLUEPRINTS, Rules(steps=steps, gates=gates, max_seeds=max_seeds))  # type: ignore[arg-type]


def measure(lifecycle: Lifecycle, rng: np.random.Generator) -> Measurement:
    """Return the measurement of a host that learns slowly, and of seeds with contributions from harmful to helpful."""
    shape = lifecycle.table.alpha.shape
    previous_accuracy = np.nan_to_num(lifecycle.val_acc, nan=20.0)
    val_acc = np.clip(previous_accuracy + rng.normal(0.1, 0.6, shape[0]), 0.0, 100.0)
    contribution = np.where(lifecycle.table.alpha > 0.0, rng.normal(1.0, 3.0, shape), np.nan)
    loss = 2.3 - val_acc / 50.0
    return Measurement(
        train_loss=loss,
        train_acc=val_acc,
        val_loss=loss,
        val_acc=val_acc,
        all_off_acc=val_acc - np.nansum(contribution, axis=1),
        contribution=contribution,
        interaction_sum=np.nan_to_num(contribution) / 2.0,
        finite=np.ones(shape[0], dtype=bool),
    )


def random_decisions(masks: DecisionMasks, rng: np.random.Generator) -> np.ndarray:
    n_envs = len(masks.valid)
    decisions = np.zeros((n_envs, len(HEADS)), dtype=np.int64)
    for head in range(len(HEADS)):
        decisions[:, head] = choose(masks.mask(head, decisions[:, :head]), rng.random(n_envs))
    return decisions


Decide = Callable[[DecisionView], np.ndarray]


@dataclass
class Episode:
    """One episode, step by step; `changes` holds everything that happened."""

    lifecycle: Lifecycle
    rng: np.random.Generator
    graft: NumberGraft = field(default_factory=NumberGraft)
    changes: list[SeedEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.signals = Signals.unknown(len(self.lifecycle.alive))

    def view(self, step: int, measurement: Measurement | None = None) -> DecisionView:
        """Measure the host, record the measurement, and return the controller's view."""
        measurement = measurement or measure(self.lifecycle, self.rng)
        self.measurement = measurement
        self.lifecycle.record(measurement)
        self.signals = self.signals.after(measurement, self.lifecycle.alive)
        return DecisionView(
            step=step,
            steps=self.lifecycle.rules.steps,
            slots=self.lifecycle.slots,
            blueprints=self.lifecycle.blueprints,
            table=self.lifecycle.table,
            alive=self.lifecycle.alive,
            signals=self.signals,
            masks=self.lifecycle.masks(step),
            observation=observe(self.lifecycle, self.signals, measurement, step),
        )

    def act(self, decisions: np.ndarray, step: int) -> list[SeedEvent]:
        """Execute the decisions, end the step, and check that table and network agree on which modules exist."""
        events = self.lifecycle.execute(decisions, step, self.graft) + self.lifecycle.end_step(step, self.graft)
        self.changes += events
        table = self.lifecycle.table
        assert set(self.graft.modules) == {(e, s) for e, s in np.argwhere(table.present).tolist()}
        for (env, slot), (blueprint, algorithm) in self.graft.modules.items():
            assert table.blueprint[env, slot] == blueprint
            assert table.algorithm[env, slot] == algorithm
            assert table.params[env, slot] == self.graft.params(env, slot)
        assert not np.isin(table.stage, (Stage.UNKNOWN, Stage.PRUNED, 5)).any()
        return events

    def follow(self, wishes: Iterable[np.ndarray], first_step: int = 1) -> Episode:
        """Carry out `wishes`, one per step, from step `first_step`."""
        for step, wish in enumerate(wishes, first_step):
            self.view(step)
            self.act(wish, step)
        return self

    def play(self, decide: Decide) -> Episode:
        for step in range(1, self.lifecycle.rules.steps + 1):
            self.act(decide(self.view(step)), step)
        return self


def decision(**heads: int) -> np.ndarray:
    """Return one environment's decision [1, head] from named heads; heads that are not named are 0."""
    row = np.zeros((1, len(HEADS)), dtype=np.int64)
    for head, value in heads.items():
        row[0, HEADS.index(head)] = value
    return row
