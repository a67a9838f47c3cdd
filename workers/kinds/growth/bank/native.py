"""Trains and measures hosts and seeds with the kernel of workers/native, one network at a time or in threads.

Every network is computed alone in its own memory, so the bits of its results do not depend on other networks or on
threads. Parameters stay in the bank; the kernel only gets the addresses of their rows.
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
from workers.kinds.growth.bank.configurations import Pass
from workers.kinds.growth.bank.layer_chain import chain_of, widest_kernel
from workers.kinds.growth.bank.network import BatchStatistics, channels, gate_params
from workers.kinds.growth.bank.stack import Stack
from workers.kinds.growth.datasets.task import Task
from workers.kinds.growth.layers.blueprint import Blueprint
from workers.kinds.growth.rules.seeds import SeedTable
from workers.kinds.growth.samples import DeviceSplit
from workers.kinds.growth.vocabulary import Stage
from workers.native import binding


@dataclass(frozen=True)
class Grown:
    """The n networks to compute, given by the seed table and by `rows` [n], the bank rows of their hosts and seeds."""

    host: Stack
    statistics: list[BatchStatistics]
    seeds: dict[tuple[int, int], Stack]
    table: SeedTable
    envs: Ints  # [n]
    rows: Ints  # [n]


class NativeStep:
    """Trains and measures networks with a kernel library; `levels`: the host levels that have a slot."""

    def __init__(
        self,
        library: ctypes.CDLL,
        task: Task,
        levels: tuple[int, ...],
        blueprints: tuple[Blueprint, ...],
        rule: GrowthSettings,
    ) -> None:
        host = task.host
        (_, height, width) = task.image
        self._levels = levels
        self._blueprints = blueprints
        self._widths = [channels(host, b) for b in levels]
        self._channels = [channels(host, level) for level in range(host.levels)]
        widest_kernel_size = host.kernel
        for blueprint in blueprints:
            widest_kernel_size = max([widest_kernel_size, *(widest_kernel(blueprint, width) for width in self._widths)])
        shape = binding.HostStruct(
            host.in_channels, height, width, host.base, host.levels, host.kernel, host.pools, host.classes
        )
        self._workspaces = binding.Workspaces(library, shape, border=widest_kernel_size // 2)
        self._rule = binding.RuleStruct(
            rule.batch_size, rule.host_lr, rule.seed_lr, rule.momentum, rule.weight_decay, rule.max_grad_norm
        )

    def train(self, grown_hosts: Grown, takes_part: Bools, split: DeviceSplit, order: Ints) -> tuple[Floats, Floats]:
        """Train one epoch, each row in its `order` [n, N], with the seeds for which `takes_part` [n, S] is True.

        Return mean loss [n] and accuracy in percent [n].
        """
        n, samples = order.shape
        if samples != len(split.y):
            raise ValueError(f"the order has {samples} samples, but the split has {len(split.y)}")
        sums = np.empty((n, 2))
        order = np.ascontiguousarray(order, dtype=np.int64)
        data = _split(split)
        memory = _Memory(grown_hosts, self._channels)

        def work(i: int) -> None:
            network, _kept = self._network(grown_hosts, memory, i, takes_part[i])
            self._workspaces.train(self._rule, network, data, order[i], sums[i])

        _each(work, n)
        return sums[:, 0] / samples, 100.0 * sums[:, 1] / samples

    def measure(self, grown_hosts: Grown, acting_mask: Bools, plan: Pass, split: DeviceSplit) -> tuple[Ints, Floats]:
        """Return the number of correct samples in each row of `plan` [R], and the real networks' summed losses [n]."""
        n = len(grown_hosts.rows)
        correct_counts = int_zeros(len(plan.keys))
        loss = np.zeros(n)
        trees = _Trees(plan, acting_mask, self._levels, len(self._channels))
        data = _split(split)
        memory = _Memory(grown_hosts, self._channels)

        def work(i: int) -> None:
            network, _kept = self._network(grown_hosts, memory, i, acting_mask[i])
            tree, start, _also = trees.of(i)
            self._workspaces.measure(network, data, tree, correct_counts[start:], loss[i:])

        _each(work, n)
        return correct_counts, loss

    def _network(
        self, grown_hosts: Grown, memory: _Memory, i: int, live_slots: Bools
    ) -> tuple[binding.NetworkStruct, object]:
        """Return network i with the seeds in `live_slots` [S], and objects that must live as long as the network."""
        row = int(grown_hosts.rows[i])
        env = int(grown_hosts.envs[i])
        seeds = (binding.SeedStruct * len(self._channels))()
        for slot in np.flatnonzero(live_slots):
            seeds[self._levels[slot]] = self._seed(grown_hosts, memory, row, env, int(slot))
        mean = binding.pointers(rows.address(row) for rows in memory.mean)
        var = binding.pointers(rows.address(row) for rows in memory.var)
        values, momentum = (rows.address(row) for rows in memory.host)
        network = binding.NetworkStruct(values, momentum, mean, var, seeds, grown_hosts.host.width)
        return network, (mean, var, seeds)

    def _seed(self, grown_hosts: Grown, memory: _Memory, row: int, env: int, slot: int) -> binding.SeedStruct:
        table = grown_hosts.table
        blueprint = int(table.blueprint[env, slot])
        stack = grown_hosts.seeds[slot, blueprint]
        width = self._widths[slot]
        values, momentum = (rows.address(row) for rows in memory.seeds[slot, blueprint])
        layers, size = chain_of(self._blueprints[blueprint], width)
        stage = int(table.stage[env, slot])
        return binding.SeedStruct(
            values=values,
            momentum=momentum,
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
    """A pass over n networks as one tree of configurations per network, over all levels."""

    def __init__(self, plan: Pass, acting_mask: Bools, levels: tuple[int, ...], n_levels: int) -> None:
        n = len(acting_mask)
        start = np.arange(n + 1)  # start of each network's rows, before the current slot
        self._levels: list[tuple[Ints, Ints, Ints]] = []  # row starts, parent rows within the network, on (0 or 1)
        for level in range(n_levels):
            if level not in levels:
                env = np.repeat(np.arange(n), np.diff(start))
                own_rows = np.arange(start[-1]) - start[env]
                self._levels.append((start, own_rows, np.zeros(len(own_rows), dtype=np.uint8)))
                continue
            slot = levels.index(level)
            rows = plan.slots[slot]
            on_flags = (rows.on & acting_mask[rows.env, slot]).astype(np.uint8)
            row_ends = np.searchsorted(rows.env, np.arange(n + 1))
            self._levels.append((row_ends, np.ascontiguousarray(rows.parent - start[rows.env]), on_flags))
            start = row_ends
        self._real = plan.real_rows() - start[:-1]

    def of(self, i: int) -> tuple[binding.TreeStruct, int, object]:
        """Return the tree of network i, its first row in the pass, and objects that must live as long as the tree."""
        count = len(self._levels)
        rows = (binding.Int * count)(*(int(start[i + 1] - start[i]) for start, *_ in self._levels))
        parents = binding.pointers(parent_rows[start[i] :].ctypes.data for start, parent_rows, _ in self._levels)
        on_flags = binding.pointers(flags[start[i] :].ctypes.data for start, _, flags in self._levels)
        tree = binding.TreeStruct(rows, parents, on_flags, int(self._real[i]))
        return tree, int(self._levels[-1][0][i]), (rows, parents, on_flags)


class _Rows:
    """Row addresses of `stacked` [rows, width]; ValueError unless dtype, device, width and strides fit the kernel."""

    def __init__(self, stacked_rows: Tensor, width: int, dtype: torch.dtype = torch.float32) -> None:
        contiguous = stacked_rows.shape[1:] == (width,) and stacked_rows.stride(1) == 1
        if not (stacked_rows.dtype == dtype and stacked_rows.is_cpu and contiguous):
            raise ValueError(
                f"the kernel takes contiguous rows of {width} values of {dtype} on a CPU, "
                f"not {list(stacked_rows.shape)} of {stacked_rows.dtype} on {stacked_rows.device} with strides "
                f"{stacked_rows.stride()}"
            )
        self._first = stacked_rows.data_ptr()
        self._rows = len(stacked_rows)
        self._apart = stacked_rows.stride(0) * stacked_rows.itemsize

    def address(self, row: int) -> int:
        if not 0 <= row < self._rows:
            raise ValueError(f"no row {row}; there are {self._rows} rows")
        return int(self._first + row * self._apart)


class _Memory:
    """Addresses of the rows that the networks consist of; `each`: channels of each host level."""

    def __init__(self, grown_hosts: Grown, channel_counts: list[int]) -> None:
        self.mean = [_Rows(s.mean, c) for s, c in zip(grown_hosts.statistics, channel_counts, strict=True)]
        self.var = [_Rows(s.var, c) for s, c in zip(grown_hosts.statistics, channel_counts, strict=True)]
        self.host = self._rows_and_momentum(grown_hosts.host)
        self.seeds = {key: self._rows_and_momentum(stack) for key, stack in grown_hosts.seeds.items()}

    @staticmethod
    def _rows_and_momentum(stack: Stack) -> tuple[_Rows, _Rows]:
        return _Rows(stack.values, stack.width), _Rows(stack.momentum, stack.width)


def _split(split: DeviceSplit) -> binding.SplitStruct:
    images = split.images(torch.float32).flatten(1)
    samples = len(split.x)
    sample_size = images.shape[1]
    labels = _Rows(split.y[None], samples, torch.int64)
    return binding.SplitStruct(_Rows(images, sample_size).address(0), labels.address(0), samples, sample_size)


def _each(work: Callable[[int], None], n: int) -> None:
    """Call work(0) … work(n − 1), in as many threads as torch may use."""
    threads = min(torch.get_num_threads(), n)
    if threads <= 1:
        for i in range(n):
            work(i)
        return
    with ThreadPoolExecutor(threads, "network") as pool:
        list(pool.map(work, range(n)))
