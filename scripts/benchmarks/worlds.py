"""The same hosts, seeds, data and orders twice: in a bank, and as plain modules in a loop."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.baseline import Host, Loop, Seed, fill, flat, seed_parameters
from esper_ab.contracts import catalog
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import GrowthSettings, HostKernel
from workers.kinds.growth.bank.bank import Bank
from workers.kinds.growth.datasets.task import Split, Task
from workers.kinds.growth.rules.seeds import SeedTable
from workers.kinds.growth.samples import DeviceSplit
from workers.kinds.growth.vocabulary import Algorithm, Stage

_ROOT = RngPath(0) / "benchmark"
_ALPHA = 0.5
_MOST_SEEDS = 3  # maximum number of live seeds of a host
BATCH_SIZES = {"digits": 64, "cifar10": 32}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One cell of the table."""

    task: str  # "cifar10": the shapes of its images and hosts, with generated data
    n_envs: int
    live_seeds: int  # per host, in the first slots
    batches: int = 4  # minibatches of one epoch
    equal_seeds: bool = False  # conv_light in every slot, instead of all blueprints in turn
    amp: Literal["off", "bf16", "fp16"] = "off"

    @property
    def settings(self) -> GrowthSettings:
        return GrowthSettings(batch_size=BATCH_SIZES[self.task], amp=self.amp)

    @property
    def samples(self) -> int:
        return self.batches * self.settings.batch_size

    def blueprint(self, env: int, slot: int) -> int:
        """Return the blueprint index of the seed in `slot` of `env`."""
        names = self.settings.blueprints
        return names.index("conv_light") if self.equal_seeds else (env + _MOST_SEEDS * slot) % len(names)


@dataclass(frozen=True)
class World:
    """A case, built in one precision."""

    case: Case
    task: Task
    bank: Bank
    table: SeedTable
    split: DeviceSplit
    x: torch.Tensor  # [N,C,H,W] channels last, for the loop
    order: NDArray[np.int64]  # [n_envs, samples]

    def bank_epoch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Train one epoch in the bank; return loss and accuracy [n_envs]."""
        loss, accuracy = self.bank.train_epoch(self.table, np.arange(self.case.n_envs), self.split, self.order)
        return torch.from_numpy(loss), torch.from_numpy(accuracy)

    def loop(self) -> Loop:
        """Return plain modules with the bank's current values."""
        return Loop([_plain(self, env) for env in range(self.case.n_envs)], self.case.settings)


def task_of(name: str) -> Task:
    """Return an entry of workers/kinds/growth/tasks."""
    task: Task = catalog.entry("workers.kinds.growth.tasks", name, "TASK")
    return task


def build(case: Case, dtype: torch.dtype = torch.float32, kernel: HostKernel = "torch", device: str = "cpu") -> World:
    """Build fresh hosts; the seed in `slot` of `env` has blueprint (env + 3·slot) mod 7 or conv_light, and algorithm
    (env + slot) mod 3."""
    task = task_of(case.task)
    n = case.n_envs
    rng = (_ROOT / "data").generator()
    x = rng.standard_normal((case.samples, *task.image), dtype=np.float32)
    split = DeviceSplit.of(Split(x=x, y=rng.integers(0, task.host.classes, case.samples)), torch.device(device), dtype)
    bank = Bank(task, task.slots, np.arange(n), case.settings, split.x, kernel)
    bank.begin_episode([_ROOT / "env" / env for env in range(n)])
    table = SeedTable.empty(n, len(task.slots))
    for env in range(n):
        for slot in range(case.live_seeds):
            table.blueprint[env, slot] = blueprint = case.blueprint(env, slot)
            table.algorithm[env, slot] = (env + slot) % len(Algorithm)
            table.stage[env, slot], table.alpha[env, slot] = Stage.BLENDING, _ALPHA
            bank.germinate(env, slot, blueprint, _ROOT / "env" / env / "slot" / slot)
    bank.settle()
    order = np.argsort((_ROOT / "order").generator().random((n, case.samples)), axis=1)
    plain_input = torch.from_numpy(x).to(dtype).contiguous(memory_format=torch.channels_last)
    return World(case, task, bank, table, split, plain_input, order)


def _plain(world: World, env: int) -> Host:
    host = Host(world.task.host).to(world.x.dtype)
    fill(host.host_parameters(), world.bank.host.values[env])
    for norm, moments in zip(host.norms, world.bank.statistics, strict=True):
        norm.running_mean.copy_(moments.mean[env])
        norm.running_var.copy_(moments.var[env])
    table = world.table
    for slot in range(world.case.live_seeds):
        index = int(table.blueprint[env, slot])
        channels = world.task.host.base << slot
        state = int(table.stage[env, slot]), float(table.alpha[env, slot]), int(table.algorithm[env, slot])
        seed = Seed(world.case.settings.blueprints[index], channels, *state).to(world.x.dtype)
        fill(seed_parameters(seed), world.bank._seeds[slot, index].values[env])
        host.seeds[slot] = seed
    return host


def assert_equal(case: Case, dtype: torch.dtype, tolerance: float, kernel: HostKernel = "torch") -> float:
    """Return the largest difference after one training step of bank and loop, over all parameters, moments and losses.

    AssertionError if the difference exceeds `tolerance`, or if the step changed nothing.
    """
    world = build(replace(case, batches=1), dtype, kernel)
    loop = world.loop()
    values_before = world.bank.host.values.clone()
    bank_losses = world.bank_epoch()
    loop_losses = loop.train_epoch(world.x, world.split.y, torch.from_numpy(world.order))
    pairs = list(zip(bank_losses, loop_losses, strict=True))
    assert not torch.equal(values_before, world.bank.host.values), "the step changed nothing"
    for env, host in enumerate(loop.hosts):
        pairs.append((world.bank.host.values[env], flat(host.host_parameters())))
        for norm, moments in zip(host.norms, world.bank.statistics, strict=True):
            pairs += [(moments.mean[env], norm.running_mean), (moments.var[env], norm.running_var)]
        for slot in range(case.live_seeds):
            row = flat(seed_parameters(host.seeds[slot]))
            pairs.append((world.bank._seeds[slot, int(world.table.blueprint[env, slot])].values[env, : len(row)], row))
    largest_difference = max(float((a - b).abs().max()) for a, b in pairs)
    assert largest_difference <= tolerance, f"{case}: bank and loop differ by {largest_difference}"
    return largest_difference


def flops_per_step(case: Case) -> float:
    """Return operations of one training step of all environments: convolutions and linear layers, two per multiply-add.

    Forward, kernel gradient and input gradient count the same; the first layer, and a seed's first convolution, whose
    input is detached, need no input gradient. For a single pixel, only a kernel's centre counts.
    """
    task = task_of(case.task)
    settings = case.settings
    _, height, _ = task.image
    total = 0.0
    for env in range(case.n_envs):
        side = height
        inputs = task.host.in_channels
        for level in range(task.host.levels):
            outputs = task.host.base << level
            taps = task.host.kernel**2 if side > 1 else 1
            total += 2.0 * side * side * inputs * outputs * taps * (2 if level == 0 else 3)
            side = side // 2 if level < task.host.pools else side
            inputs = outputs
            if level < case.live_seeds:
                name = settings.blueprints[case.blueprint(env, level)]
                kernels = [
                    s for s in catalog.entry("workers.kinds.growth.blueprints", name, "BLUEPRINT").params(outputs)
                ]
                shapes = [s.shape if side > 1 else s.shape[:2] for s in kernels if len(s.shape) == 4]
                sizes = [2.0 * side * side * math.prod(shape) for shape in shapes]
                total += 3.0 * sum(sizes) - sum(sizes[:1])
        total += 3 * 2.0 * inputs * task.host.classes
    return total * settings.batch_size
