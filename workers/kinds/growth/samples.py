"""Samples of a task's splits on their devices: which samples each host gets, and in which order.

In a family, each host draws a context and some of that context's training samples. If an epoch needs more samples than
that, the host sees them several times, so that every host takes the same number of steps. Other tasks have one unnamed
context, whose samples all go to every host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from esper_ab.contracts.rng import RngPath
from workers.arrays import Ints, int_zeros
from workers.kinds.growth.datasets.task import Split, Splits, Task


@dataclass(frozen=True)
class DeviceSplit:
    """x [N, C, H, W] channels last, y [N]."""

    x: Tensor
    y: Tensor
    _images: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(split: Split, device: torch.device, dtype: torch.dtype) -> DeviceSplit:
        """Upload a split once."""
        x = torch.from_numpy(split.x).to(device, dtype, memory_format=torch.channels_last)
        return DeviceSplit(x, torch.from_numpy(split.y).to(device))

    def cut(self, start: int, samples: int) -> DeviceSplit:
        """Return part of the split, without a copy."""
        return DeviceSplit(self.x[start : start + samples], self.y[start : start + samples])

    def images(self, dtype: torch.dtype) -> Tensor:
        """Return x as [N, H, W, C] in precision `dtype`, from a cache; nothing is copied if x has this precision."""
        if dtype not in self._images:
            self._images[dtype] = self.x.to(dtype).permute(0, 2, 3, 1).contiguous()
        return self._images[dtype]


@dataclass(frozen=True)
class DeviceData:
    """The three splits on one device."""

    train: DeviceSplit
    validation: DeviceSplit
    test: DeviceSplit

    @staticmethod
    def of(splits: Splits, device: torch.device, dtype: torch.dtype = torch.float32) -> DeviceData:
        """Upload all splits once; they never change."""
        parts = (splits.train, splits.validation, splits.test)
        return DeviceData(*(DeviceSplit.of(split, device, dtype) for split in parts))

    def of_contexts(self, task: Task) -> list[DeviceData]:
        """Return the data of each context of a family, without a copy; other tasks have all data as one context."""
        if not task.contexts:
            return [self]
        train, validation, test = task.sizes
        return [
            DeviceData(
                self.train.cut(context * train, train),
                self.validation.cut(context * validation, validation),
                self.test.cut(context * test, test),
            )
            for context in range(len(task.contexts))
        ]


class Shares:
    """One episode's draws: each host's context [E], and the samples of its context for an epoch [E, N]."""

    def __init__(self, task: Task, paths: Sequence[RngPath]) -> None:
        """Draw contexts and samples at addresses below `paths`, one path per environment."""
        self._contexts = task.contexts
        self.context = int_zeros(len(paths))
        if self._contexts:
            drawn_shares = [_share(task, path / "kind") for path in paths]
            self.context = np.array([context for context, _ in drawn_shares], dtype=np.int64)
            self._samples = np.stack([samples for _, samples in drawn_shares])  # [E, N]

    def among(self, envs: Ints, orders: Ints) -> Ints:
        """Return the samples of the contexts of `envs` [n], in the orders [n, N] of an epoch."""
        if self._contexts:
            return np.take_along_axis(self._samples[envs], orders, axis=1)
        return orders


def _share(task: Task, path: RngPath) -> tuple[int, Ints]:
    """Return a context, and the samples of an epoch [N]."""
    context_draw, number_draw = (path / "which").generator().random(2)
    context = int(context_draw * len(task.contexts))
    least_images, most_images = task.contexts[context].images
    number = least_images + int(number_draw * (most_images - least_images + 1))
    shuffled_samples = np.argsort((path / "images").generator().random(task.sizes[0]), kind="stable")
    return context, shuffled_samples[np.arange(task.sizes[0]) % number]


class Orders:
    """Draws sample orders for the environments of one device. A draw's address, not its time, determines its numbers.

    `ahead`: draw in a thread, one step in advance. Sorting takes milliseconds per environment, during which a GPU would
    be idle; a CPU that trains has no core to spare for the thread.
    """

    def __init__(self, samples: int, *, ahead: bool) -> None:
        self._samples = samples
        self._thread = ThreadPoolExecutor(1, "orders") if ahead else None
        self._next: tuple[int, Ints, Future[Ints]] | None = None

    def begin(self, paths: Mapping[int, RngPath]) -> None:
        """Start a new episode, with an address for every environment."""
        self._paths = dict(paths)
        self._next = None

    def of(self, step: int, envs: Ints, *, last: bool) -> Ints:
        """Return a permutation of the samples for each of `envs`, [n, samples].

        `last`: no next step is prepared. From one step to the next, environments can only drop out.
        """
        if self._next is not None and self._next[0] == step:
            _, drawn_envs, future = self._next
            orders = future.result()[np.searchsorted(drawn_envs, envs)]
        else:
            orders = _permutations(self._samples, self._addresses(step, envs))
        self._next = None
        if self._thread is not None and not last:
            next_orders = self._thread.submit(_permutations, self._samples, self._addresses(step + 1, envs))
            self._next = step + 1, envs, next_orders
        return orders

    def _addresses(self, step: int, envs: Ints) -> list[RngPath]:
        return [self._paths[env] / "step" / step / "data-order" for env in envs]


def _permutations(samples: int, addresses: list[RngPath]) -> Ints:
    draws = np.stack([path.generator().random(samples) for path in addresses])
    return np.argsort(draws, axis=1, kind="stable")
