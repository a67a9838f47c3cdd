"""The growth environments of one run: hosts on one or more devices, with one lifecycle and one clock.

They implement `Environments` of workers/environments.py with these parts:

    view = env.advance()              # one host epoch, one validation
    facts = env.facts(decisions)      # before the decision changes anything
    env.execute(decisions)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from esper_ab.contracts.records import EnvEpisode, SeedEvent, finite
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import GrowthSettings, HostKernel, RewardSettings
from workers.arrays import Bools, Floats, Ints, all_false, all_true, int_zeros
from workers.environments import Ended, Happened, Stopwatch
from workers.kinds.growth.bank.bank import Bank, PassResult
from workers.kinds.growth.bank.configurations import contributions
from workers.kinds.growth.datasets.task import Task
from workers.kinds.growth.facts import StepFacts
from workers.kinds.growth.layers.device import is_cpu
from workers.kinds.growth.measures import MEASURES
from workers.kinds.growth.rules.facts import FactsMemory
from workers.kinds.growth.rules.lifecycle import Lifecycle
from workers.kinds.growth.rules.masks import DecisionView, Rules
from workers.kinds.growth.rules.observe import observe
from workers.kinds.growth.rules.tracker import Measurement, Signals
from workers.kinds.growth.samples import DeviceData, Orders, Shares
from workers.kinds.growth.vocabulary import HEADS, Algorithm

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class EnvSpec:
    """Specification of the environments: everything except data and randomness."""

    task: Task
    slots: tuple[str, ...]
    steps: int
    env_devices: tuple[str, ...]  # device of environment i
    growth: GrowthSettings
    reward: RewardSettings  # constants of the reward inputs
    kernel: HostKernel = "torch"  # what trains and measures hosts


class GrowthEnv:
    """Growth environments of a run; `data`: the splits for each device of `spec.env_devices`, in the hosts' dtype."""

    def __init__(self, spec: EnvSpec, data: dict[str, DeviceData], stopwatch: Stopwatch) -> None:
        self.spec = spec
        self.steps = spec.steps
        self.n_envs = len(spec.env_devices)
        self._stopwatch = stopwatch
        self._banks: list[tuple[Bank, list[DeviceData]]] = []  # data by context
        self._orders: dict[Bank, Orders] = {}
        for device in dict.fromkeys(spec.env_devices):
            envs = np.array([i for i, name in enumerate(spec.env_devices) if name == device], dtype=np.int64)
            template = data[device].train.x
            bank = Bank(spec.task, spec.slots, envs, spec.growth, template, spec.kernel)
            contexts = data[device].of_contexts(spec.task)
            self._banks.append((bank, contexts))
            self._orders[bank] = Orders(len(contexts[0].train.y), ahead=not is_cpu(template.device))
        self._threads = ThreadPoolExecutor(len(self._banks), "device")  # creates threads only when there is work
        # Environment -> the bank that holds it, and its row there.
        self.homes: dict[int, tuple[Bank, int]] = {}
        for bank, _ in self._banks:
            self.homes |= {env: (bank, row) for row, env in enumerate(bank.envs.tolist())}
        self.host_params = self._banks[0][0].host.width

    def begin(self, paths: Sequence[RngPath]) -> DecisionView:
        """Start an episode with fresh hosts and empty slots; train its first epoch. `paths`: one per environment."""
        self.epoch = 0
        self._paths = paths
        self._shares = Shares(self.spec.task, paths)
        # All at once: between training epochs a draw takes five times as long, because its code is no longer cached.
        self._uniforms: Floats = np.empty((self.steps, self.n_envs, len(HEADS)))
        for step, env in np.ndindex(self.steps, self.n_envs):
            generator = (self._paths[env] / "step" / (step + 1) / "action").generator()
            generator.random(out=self._uniforms[step, env])
        for bank, _ in self._banks:
            bank.begin_episode([self._paths[env] for env in bank.envs])
            self._orders[bank].begin({env: self._paths[env] for env in bank.envs})
        rules = Rules(steps=self.steps, gates=self.spec.growth.gates, max_seeds=self.spec.growth.max_seeds)
        self.lifecycle = Lifecycle(self.n_envs, self.spec.slots, self.spec.growth.blueprints, rules)
        self._signals = Signals.unknown(self.n_envs)
        self._memory = FactsMemory(self.n_envs, len(self.spec.slots), self.host_params, self.spec.reward)
        self.events: list[SeedEvent] = []
        self.diverged = all_false(self.n_envs)
        self.steps_done = int_zeros(self.n_envs)
        return self.advance()

    def step(self, decisions: Ints) -> tuple[Happened[StepFacts], DecisionView]:
        """Execute decisions [E, heads]; train the next epoch unless this was the last step.

        If a host diverges in that epoch, its episode ends with this decision, which gets the penalty under every mode.
        """
        with self._stopwatch.phase("decide"):
            facts = self.facts(decisions)
            self.execute(decisions)
        if self.epoch == self.steps:
            all_envs = all_true(self.n_envs)
            view = replace(self._view, alive=~all_envs)
            return Happened(facts=facts, ended=all_envs), view
        was_alive = self.alive.copy()
        view = self.advance()
        diverged_mask = was_alive & ~view.alive
        penalty = np.where(diverged_mask, self.spec.reward.divergence_penalty, 0.0)
        return Happened(facts=facts, ended=diverged_mask, penalty=penalty), view

    def ends(self) -> Ended:
        """Return the end of every host's episode, including the held-out accuracy, and the lives of the seeds."""
        accuracy = self.held_out_accuracy()
        envs = tuple(
            EnvEpisode(
                env=i,
                device=device,
                steps=int(self.steps_done[i]),
                outcome=float(accuracy[i]),
                reward_sum=None,
                failed=bool(self.diverged[i]),
                measures=dict(zip(MEASURES.names, self._measured(i), strict=True)),
            )
            for i, device in enumerate(self.spec.env_devices)
        )
        return Ended(envs, tuple(self.events))

    def _measured(self, i: int) -> tuple[float | None, ...]:
        """Return the measures of host `i` in the order of `MEASURES`.

        A missing percentage counts as 0: an environment that diverged in its first epoch has no measurement.
        """
        lifecycle = self.lifecycle
        signals = self._signals
        percent = np.array([signals.val_acc[i], signals.best_val_acc[i]])
        percent[~np.isfinite(percent)] = 0.0
        counts = (
            self.host_params,
            lifecycle.table.params[i].sum(),
            lifecycle.germinated[i],
            lifecycle.pruned[i],
            lifecycle.fossilized[i],
            lifecycle.contributing[i],
            *lifecycle.op_counts[i],
        )
        return *percent.tolist(), finite(float(signals.val_loss[i])), *map(float, counts)

    def carried(self) -> dict[str, Any]:
        """Return {}, because every episode grows fresh hosts."""
        return {}

    def take_up(self, carried_state: dict[str, Any]) -> Bools:
        """Return all False, because no host is mid-episode."""
        return all_false(self.n_envs)

    @property
    def alive(self) -> Bools:
        """Environments [E] whose episode has not ended."""
        return self.lifecycle.alive

    def uniforms(self) -> Floats:
        """Return the random numbers [E, heads] of the next decision; every head gets one at every step, used or not."""
        return np.asarray(self._uniforms[self.epoch - 1])

    def advance(self) -> DecisionView:
        """Train one epoch and validate once in every live environment; return the decision view.

        A host whose losses are not finite has diverged: its episode ends before this step's decision.
        """
        self.epoch += 1
        measurement = self._measure()
        diverged_mask = self.alive & ~measurement.finite
        self.lifecycle.stop(diverged_mask)
        self.diverged = self.diverged | diverged_mask
        self.steps_done[self.alive] = self.epoch
        self.lifecycle.record(measurement)
        self._signals = self._signals.after(measurement, self.alive)
        self._measurement = measurement
        self._view = DecisionView(
            step=self.epoch,
            steps=self.steps,
            slots=self.spec.slots,
            blueprints=self.spec.growth.blueprints,
            table=self.lifecycle.table,
            alive=self.alive.copy(),
            signals=self._signals,
            masks=self.lifecycle.masks(self.epoch),
            observation=observe(self.lifecycle, self._signals, measurement, self.epoch),
        )
        return self._view

    def facts(self, decisions: Ints) -> StepFacts:
        """Return the facts of this step and of decisions [E, heads]; call once per step, before `execute`."""
        return self._memory.step_facts(self.lifecycle, self._signals, self._measurement, decisions, self.epoch)

    def execute(self, decisions: Ints) -> None:
        """Execute decisions [E, heads], then advance ramps and cooldowns by one step in every slot."""
        self.events += self.lifecycle.execute(decisions, self.epoch, self)
        self.events += self.lifecycle.end_step(self.epoch, self)

    def held_out_accuracy(self) -> Floats:
        """Return the accuracy [E] on the test split in percent; diverged hosts have chance level. Changes no state."""
        accuracy = np.full(self.n_envs, 100.0 / self.spec.task.host.classes)
        with self._stopwatch.phase("validate"):
            for envs, result in self._call_per_bank(partial(self._pass, test=True), ~self.diverged):
                accuracy[envs] = result.accuracy
        return accuracy

    def germinate(self, env: int, slot: int, blueprint_index: int, algorithm: int) -> int:
        """Implement `Graft.germinate`; modules are initialised from rng paths of the current step."""
        bank, row = self.homes[env]
        module, gate = bank.germinate(row, slot, blueprint_index, self._address(env, slot))
        if algorithm == Algorithm.GATE:
            return module + gate
        return module

    def set_algorithm(self, env: int, slot: int, algorithm: int) -> int:
        """Implement `Graft.set_algorithm`."""
        bank, row = self.homes[env]
        blueprint = int(self.lifecycle.table.blueprint[env, slot])
        module, gate = bank.sizes(slot, blueprint)
        if algorithm != Algorithm.GATE:
            return module
        bank.open_gate(row, slot, blueprint, self._address(env, slot))
        return module + gate

    def drop(self, env: int, slot: int) -> None:
        """Implement `Graft.drop`."""
        bank, row = self.homes[env]
        bank.drop(row, slot, int(self.lifecycle.table.blueprint[env, slot]))

    def _address(self, env: int, slot: int) -> RngPath:
        """Return the rng path of a module germinated now in `slot` of `env`."""
        return self._paths[env] / "step" / self.epoch / "slot" / self.spec.slots[slot]

    def _measure(self) -> Measurement:
        shape = (self.n_envs, len(self.spec.slots))
        measurements = {
            name: np.full(self.n_envs, np.nan) for name in ("train_loss", "train_acc", "val_loss", "val_acc")
        }
        accuracy_off = np.full(self.n_envs, np.nan)
        contribution = np.full(shape, np.nan)
        interaction = np.zeros(shape)
        with self._stopwatch.phase("train"):
            training_results = self._call_per_bank(self._train, self.alive)
        for envs, (loss, accuracy) in training_results:
            measurements["train_loss"][envs] = loss
            measurements["train_acc"][envs] = accuracy
        with self._stopwatch.phase("validate"):
            validations = self._call_per_bank(partial(self._pass, test=False), self.alive)
        for envs, result in validations:
            measurements["val_loss"][envs] = result.loss
            measurements["val_acc"][envs] = result.real_accuracy
            contribution[envs], accuracy_off[envs], interaction[envs] = contributions(
                result.active, result.accuracy, result.plan
            )
        finite_mask = np.isfinite(measurements["train_loss"]) & np.isfinite(measurements["val_loss"])
        return Measurement(
            **measurements,
            all_off_acc=accuracy_off,
            contribution=contribution,
            interaction_sum=interaction,
            finite=finite_mask,
        )

    def _call_per_bank(
        self, work: Callable[[Bank, list[DeviceData], Ints], list[tuple[Ints, T]]], env_mask: Bools
    ) -> list[tuple[Ints, T]]:
        """Call `work(bank, data by context, rows)` per bank with its rows in `env_mask` [E]; return the results.

        For each context, `work` returns (positions in its rows, result), and this function returns (environments,
        result). CPU devices take turns, because small kernels keep the interpreter busy and threads would only contend
        for it. With GPUs each device has a thread, so that some threads launch kernels while others wait. Threads share
        no tensor that is written, and all are done before this function returns, so each computes what it would
        compute alone.
        """
        parts = []
        for bank, data in self._banks:
            rows = np.flatnonzero(env_mask[bank.envs])
            if len(rows):
                parts.append((bank, data, rows))
        only_cpus = all(is_cpu(data[0].train.x.device) for _, data, _ in parts)
        if len(parts) < 2 or only_cpus:
            results = [work(*part) for part in parts]
        else:
            results = list(self._threads.map(work, *zip(*parts, strict=True)))
        results_by_envs = []
        for (bank, _, rows), row_results in zip(parts, results, strict=True):
            results_by_envs += [(bank.envs[rows[index]], result) for index, result in row_results]
        return results_by_envs

    def _contexts(self, bank: Bank, data: list[DeviceData], rows: Ints) -> Iterator[tuple[DeviceData, Ints]]:
        """Yield, for each context found in `rows`, its data and its positions in `rows`."""
        contexts = self._shares.context[bank.envs[rows]]
        for context, own_data in enumerate(data):
            index = np.flatnonzero(contexts == context)
            if len(index):
                yield own_data, index

    def _train(self, bank: Bank, data: list[DeviceData], rows: Ints) -> list[tuple[Ints, tuple[Floats, Floats]]]:
        envs = bank.envs[rows]
        table = self.lifecycle.table
        drawn_orders = self._orders[bank].of(self.epoch, envs, last=self.epoch == self.steps)
        order = self._shares.among(envs, drawn_orders)
        return [
            (index, bank.train_epoch(table, rows[index], own_data.train, order[index]))
            for own_data, index in self._contexts(bank, data, rows)
        ]

    def _pass(self, bank: Bank, data: list[DeviceData], rows: Ints, *, test: bool) -> list[tuple[Ints, PassResult]]:
        """Measure the test split, or the validation split with all ablations."""
        results = []
        for own_data, index in self._contexts(bank, data, rows):
            split = own_data.test if test else own_data.validation
            results.append((index, bank.measure(self.lifecycle.table, rows[index], split, ablate=not test)))
        return results
