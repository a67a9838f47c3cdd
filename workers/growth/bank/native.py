"""Hosts and seeds trained and measured by the kernel of workers/native, one network after the other or in threads.

Every network is computed alone, in memory of its own, so its bits depend on no neighbour and no thread. Parameters
stay where the bank has them: the kernel is given the addresses of their rows.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from esper_ab.contracts.settings import GrowthSettings
from workers.arrays import Bools, Floats, Ints, int_zeros
from workers.datasets.task import Task
from workers.growth.bank.configurations import Pass
from workers.growth.bank.network import BatchStatistics, channels, gate_params
from workers.growth.bank.stack import Stack
from workers.growth.rules.seeds import SeedTable
from workers.growth.samples import DeviceSplit
from workers.layers.blueprint import Blueprint
from workers.native import binding
from workers.native.binding import chain_of, widest_kernel
from workers.vocabulary import Stage


@dataclass(frozen=True)
class Grown:
    """What n networks are made of: bank rows `rows` [n] of hosts and seeds, and their seeds' states by the table."""

    host: Stack
    statistics: list[BatchStatistics]
    seeds: dict[tuple[int, int], Stack]
    table: SeedTable
    envs: Ints  # [n]
    rows: Ints  # [n]


class NativeStep:
    """Trains and measures networks by a library of the kernel; `levels`: of the host, behind which slots lie."""

    def __init__(
        self,
        library: ctypes.CDLL,
        task: Task,
        levels: tuple[int, ...],
        blueprints: tuple[Blueprint, ...],
        rule: GrowthSettings,
    ) -> None:
        host, (_, height, width) = task.host, task.image
        self._library = binding.declared(library)
        self._levels, self._blueprints, self._widths = levels, blueprints, [channels(host, b) for b in levels]
        self._n_levels = host.levels
        kernels = [widest_kernel(blueprint, width) for blueprint in blueprints for width in self._widths]
        shape = binding.HostStruct(
            host.in_channels, height, width, host.base, host.levels, host.kernel, host.pools, host.classes
        )
        self._workspaces = binding.Workspaces(self._library, shape, max([host.kernel, *kernels]) // 2)
        self._rule = binding.RuleStruct(
            rule.batch_size, rule.host_lr, rule.seed_lr, rule.momentum, rule.weight_decay, rule.max_grad_norm
        )

    def train(self, grown: Grown, takes_part: Bools, split: DeviceSplit, order: Ints) -> tuple[Floats, Floats]:
        """One epoch in each row's `order` [n, N] with the seeds `takes_part` [n, S]; mean loss, accuracy in percent."""
        n, samples = order.shape
        found = np.empty((n, 2))
        order = np.ascontiguousarray(order, dtype=np.int64)
        data = _split(split)

        def work(i: int) -> None:
            network, _kept = self._network(grown, i, takes_part[i])
            with self._workspaces.one() as workspace:
                status = self._library.esper_train(
                    workspace, ctypes.byref(self._rule), ctypes.byref(network), ctypes.byref(data),
                    order[i].ctypes.data, found[i].ctypes.data,
                )  # fmt: skip
            binding.checked(status)

        _each(work, n)
        return found[:, 0] / samples, 100.0 * found[:, 1] / samples

    def measure(self, grown: Grown, acting: Bools, plan: Pass, split: DeviceSplit) -> tuple[Ints, Floats]:
        """How many samples every row of `plan` [R] has right, and the sum of the real networks' losses [n]."""
        n = len(grown.rows)
        right, loss = int_zeros(len(plan.keys)), np.zeros(n)
        trees, data = _Trees(plan, acting, self._levels, self._n_levels), _split(split)

        def work(i: int) -> None:
            network, _kept = self._network(grown, i, acting[i])
            tree, start, _also = trees.of(i)
            own = ctypes.c_double()
            with self._workspaces.one() as workspace:
                status = self._library.esper_measure(
                    workspace, ctypes.byref(network), ctypes.byref(data), ctypes.byref(tree),
                    right[start:].ctypes.data, ctypes.byref(own),
                )  # fmt: skip
            binding.checked(status)
            loss[i] = own.value

        _each(work, n)
        return right, loss

    def _network(self, grown: Grown, i: int, there: Bools) -> tuple[binding.NetworkStruct, object]:
        """The network of position i with the seeds `there` [S], and what has to live as long."""
        row, env = int(grown.rows[i]), int(grown.envs[i])
        seeds = (binding.SeedStruct * self._n_levels)()
        for slot in np.flatnonzero(there):
            seeds[self._levels[slot]] = self._seed(grown, row, env, int(slot))
        mean = (binding.Pointer * self._n_levels)(*(_row(s.mean, row) for s in grown.statistics))
        var = (binding.Pointer * self._n_levels)(*(_row(s.var, row) for s in grown.statistics))
        values, momentum = _row(grown.host.values, row), _row(grown.host.momentum, row)
        return binding.NetworkStruct(values, momentum, mean, var, seeds), (mean, var, seeds)

    def _seed(self, grown: Grown, row: int, env: int, slot: int) -> binding.SeedStruct:
        table, blueprint = grown.table, int(grown.table.blueprint[env, slot])
        stack, width = grown.seeds[slot, blueprint], self._widths[slot]
        layers, size = chain_of(self._blueprints[blueprint], width)
        stage = int(table.stage[env, slot])
        return binding.SeedStruct(
            values=_row(stack.values, row),
            momentum=_row(stack.momentum, row),
            layers=layers,
            n_layers=len(layers),
            width=stack.width,
            gate=size,
            gate_hidden=gate_params(width)[0].shape[1],
            join=int(table.algorithm[env, slot]),
            incubating=stage == Stage.TRAINING,
            fossil=stage == Stage.FOSSILIZED,
            trained=not table.frozen[env, slot],
            alpha=float(table.alpha[env, slot]),
        )


class _Trees:
    """A pass over n networks as one tree of configurations for each, over all levels."""

    def __init__(self, plan: Pass, acting: Bools, levels: tuple[int, ...], n_levels: int) -> None:
        n = len(acting)
        start = np.arange(n + 1)  # of every network's rows before the slot
        self._levels: list[tuple[Ints, Ints, Ints]] = []  # starts, parents in the network's own rows, on
        for level in range(n_levels):
            if level not in levels:
                env = np.repeat(np.arange(n), np.diff(start))
                own = np.arange(start[-1]) - start[env]
                self._levels.append((start, own, np.zeros(len(own), dtype=np.uint8)))
                continue
            slot = levels.index(level)
            rows = plan.slots[slot]
            on = (rows.on & acting[rows.env, slot]).astype(np.uint8)
            after = np.searchsorted(rows.env, np.arange(n + 1))
            self._levels.append((after, np.ascontiguousarray(rows.parent - start[rows.env]), on))
            start = after
        self._real = plan.real_rows() - start[:-1]

    def of(self, i: int) -> tuple[binding.TreeStruct, int, object]:
        """The tree of network i, the first of its rows in the pass, and what has to live as long."""
        count = len(self._levels)
        rows = (binding.Int * count)(*(int(start[i + 1] - start[i]) for start, *_ in self._levels))
        parents = (binding.Pointer * count)(*(own[start[i] :].ctypes.data for start, own, _ in self._levels))
        on = (binding.Pointer * count)(*(flags[start[i] :].ctypes.data for start, _, flags in self._levels))
        tree = binding.TreeStruct(rows, parents, on, int(self._real[i]))
        return tree, int(self._levels[-1][0][i]), (rows, parents, on)


def _row(stacked: Tensor, row: int) -> int:
    """The address of one row."""
    return int(stacked.data_ptr() + row * stacked.stride(0) * stacked.element_size())


def _split(split: DeviceSplit) -> binding.SplitStruct:
    return binding.SplitStruct(split.images(torch.float32).data_ptr(), split.y.data_ptr(), len(split.y))


def _each(work: Callable[[int], None], n: int) -> None:
    """work(0) … work(n − 1), in as many threads as torch may use."""
    threads = min(torch.get_num_threads(), n)
    if threads == 1:
        for i in range(n):
            work(i)
        return
    with ThreadPoolExecutor(threads, "network") as pool:
        list(pool.map(work, range(n)))
