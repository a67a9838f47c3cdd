"""Train random networks by the kernel and by torch, and measure the difference between the results."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from esper_ab.contracts import catalog
from esper_ab.contracts.settings import GrowthSettings, HostKernel
from support.worlds.tensor_world import env_path, plant
from workers.kinds.growth.bank.bank import Bank
from workers.kinds.growth.bank.native import NativeStep
from workers.kinds.growth.bank.network import BatchStatistics
from workers.kinds.growth.datasets.task import HostSpec, Task
from workers.kinds.growth.layers.blueprint import (
    Blueprint,
    Conv,
    Excite,
    Norm,
    ParamSpec,
    Relu,
    Towards,
    conv_params,
    norm_params,
    residual,
)
from workers.kinds.growth.rules.seeds import SeedTable
from workers.kinds.growth.samples import DeviceSplit
from workers.kinds.growth.tasks.digits import TASK as DIGITS
from workers.kinds.growth.vocabulary import Algorithm, Stage
from workers.native import library

TEST_BLUEPRINTS = (
    residual("relu_first", lambda c: norm_params(c), Relu(), Norm("norm")),
    residual(
        "wide",
        lambda c: (*norm_params(c, "first"), conv_params("conv", c + 3, c, 5), conv_params("back", c, c + 3, 1)),
        Norm("first"),
        Conv("conv"),
        Relu(),
        Conv("back"),
    ),
    residual(
        "towards_inside",
        lambda c: (conv_params("each", c, 1, 5), ParamSpec("scale", (1,)), conv_params("last", c, c, 3)),
        Conv("each", depthwise=True),
        Relu(),
        Towards("scale"),
        Relu(),
        Conv("last"),
    ),
    residual(
        "excited",
        lambda c: (
            conv_params("conv", c, c, 1),
            ParamSpec("squeeze", (c, 3), 0.5),
            ParamSpec("excite", (3, c), 0.5),
            ParamSpec("bias", (c,), 0.5),
            conv_params("each", c, 1, 3),
        ),
        Conv("conv"),
        Excite("squeeze", "excite", "bias"),
        Conv("each", depthwise=True),
    ),
)
BLUEPRINTS: tuple[Blueprint, ...] = (
    *(
        catalog.entry("workers.kinds.growth.blueprints", name, "BLUEPRINT")
        for name in catalog.names("workers.kinds.growth.blueprints")
    ),
    *TEST_BLUEPRINTS,
)
STAGES = [Stage.GERMINATED, Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED]
MODES = ("normal", "scales", "ragged")
Seed = tuple[int, Stage, Algorithm, float, bool]  # blueprint or -1, stage, join, alpha, frozen


def grown(host: HostSpec, sides: tuple[int, int], seeds: list[Seed], batch: int) -> tuple[Bank, SeedTable, Task]:
    """Return two networks with random parameters and momenta, and `seeds` in their slots."""
    host = replace(host, pools=min(host.pools, host.levels))
    task = replace(DIGITS, host=host, image=(host.in_channels, *sides), slots=tuple(map(str, range(host.levels))))
    table = SeedTable.empty(2, host.levels)
    rule = GrowthSettings(batch_size=batch, weight_decay=0.01)
    bank = Bank(task, task.slots, np.arange(2), rule, torch.zeros(()))
    bank._blueprints = BLUEPRINTS
    bank.begin_episode([env_path(env) for env in range(2)])
    for (env, slot), (blueprint, stage, algorithm, alpha, frozen_flag) in zip(
        np.ndindex(2, host.levels), seeds, strict=False
    ):
        if blueprint >= 0:
            plant(bank, table, env, slot, blueprint, alpha=alpha, algorithm=algorithm)
            table.stage[env, slot], table.frozen[env, slot] = stage, frozen_flag
    bank.settle()
    draws = torch.Generator().manual_seed(batch)
    for stack in (bank.host, *bank._seeds.values()):
        stack.values += 0.2 * torch.randn(stack.values.shape, generator=draws)
    bank.host.momentum += 0.01 * torch.randn(bank.host.momentum.shape, generator=draws)
    return bank, table, task


def precise(bank: Bank) -> Bank:
    """Return a copy of the networks that torch computes in float64."""
    bank = copy.deepcopy(bank)
    bank._dtype = bank._computed = torch.float64
    for stack in (bank.host, *bank._seeds.values()):
        stack.values = stack.values.double()
        stack.momentum = stack.momentum.double()
    bank.statistics = [BatchStatistics(s.mean.double(), s.var.double()) for s in bank.statistics]
    return bank


@dataclass(frozen=True)
class Trained:
    """Two networks after an epoch, and their mean losses in it [2]."""

    bank: Bank
    loss: torch.Tensor


def difference(result: Trained, reference: Trained, rows: slice = slice(None)) -> float:
    """Return the largest difference of any tensor, relative to the largest number of that tensor."""
    numbers, expected = (
        (*all_tensors(training_result.bank, rows), training_result.loss[rows])
        for training_result in (result, reference)
    )
    pairs = zip(numbers, expected, strict=True)
    return max(float(((a.double() - b).abs().max() / (1e-3 + b.abs().max())).nan_to_num(torch.inf)) for a, b in pairs)


def all_tensors(bank: Bank, rows: slice | np.ndarray = slice(None)) -> list[torch.Tensor]:
    stacks = [bank.host, *(stack for _, stack in sorted(bank._seeds.items()))]
    moments = [value for s in bank.statistics for value in (s.mean, s.var)]
    return [*(v[rows] for stack in stacks for v in (stack.values, stack.momentum)), *(v[rows] for v in moments)]


def equal_to_the_bit(bank: Bank, other_bank: Bank, rows: slice | np.ndarray = slice(None)) -> bool:
    """True if all tensors of both banks are bit-identical."""
    return all(torch.equal(a, b) for a, b in zip(all_tensors(bank, rows), all_tensors(other_bank, rows), strict=True))


@dataclass(frozen=True)
class Case:
    """Two networks and an epoch for them; each method trains a copy."""

    bank: Bank
    table: SeedTable
    task: Task
    split: DeviceSplit
    order: np.ndarray

    def by_torch(self) -> Trained:
        return self._trained(copy.deepcopy(self.bank), self.split)

    def in_float64(self, mode: TorchFunctionMode | None = None) -> Trained:
        with mode or contextlib.nullcontext():
            return self._trained(precise(self.bank), DeviceSplit(self.split.x.double(), self.split.y))

    def by_kernel(self, kernel: HostKernel) -> Trained:
        bank = copy.deepcopy(self.bank)
        levels = tuple(range(self.task.host.levels))
        bank._native = NativeStep(library.load(kernel), self.task, levels, BLUEPRINTS, bank._rule)
        return self._trained(bank, self.split)

    def nearby(self, number: int) -> Case:
        """Return the case with its parameters changed in the fifth digit.

        It is as well conditioned as this case, but has other rounding errors.
        """
        bank = copy.deepcopy(self.bank)
        draws = torch.Generator().manual_seed(number)
        for stack in (bank.host, *bank._seeds.values()):
            stack.values *= 1.0 + 1e-5 * torch.randn(stack.values.shape, generator=draws)
        return replace(self, bank=bank)

    def _trained(self, bank: Bank, split: DeviceSplit) -> Trained:
        loss, _ = bank.train_epoch(self.table, np.arange(2), split, self.order)
        return Trained(bank, torch.from_numpy(loss))


def drawn(mode: str, rng_seed: int) -> Case:
    """Draw a case. `mode`: "normal", "scales" (images of any scale and centre) or "ragged" (a smaller last batch)."""
    draws = np.random.default_rng([rng_seed, *mode.encode()])
    pick = lambda *choices: choices[draws.integers(len(choices))]  # noqa: E731
    ragged = mode == "ragged"
    scales = mode == "scales"
    host = HostSpec(
        in_channels=int(draws.integers(1, 4)),
        base=pick(4, 6, 8),
        levels=int(draws.integers(1, 5)),
        kernel=pick(1, 3, 5),
        pools=int(draws.integers(0, 4)),
        classes=int(draws.integers(2, 6)),
    )
    least_side = 1 << min(host.pools, host.levels)
    sides = (int(draws.integers(least_side, least_side + 9)), int(draws.integers(least_side, least_side + 9)))
    seeds: list[Seed] = [
        (pick(-1, *range(len(BLUEPRINTS))), pick(*STAGES), pick(*Algorithm), pick(0.0, 0.3, 1.0), pick(True, False))
        for _ in range(2 * host.levels)
    ]
    batch = int(draws.integers(1, 12)) if ragged else int(draws.integers(2, 41))
    last_batch = int(draws.integers(1, batch + 1))
    samples = batch * int(draws.integers(1, 7)) + last_batch if ragged else int(draws.integers(2, 3 * batch))
    centre, spread = (10.0 ** draws.uniform(-3, 3, 2)) if scales else (3.0, 1.0)
    return case(host, sides, seeds, batch, samples, draws, centre, spread)


def case(
    host: HostSpec,
    sides: tuple[int, int],
    seeds: list[Seed],
    batch: int,
    samples: int,
    draws: np.random.Generator,
    centre: float = 3.0,
    spread: float = 1.0,
) -> Case:
    """Return two networks, and `samples` random images in batches of `batch`."""
    bank, table, task = grown(host, sides, seeds, batch)
    x = (spread * draws.standard_normal((samples, *task.image)) + centre).astype(np.float32)
    split = DeviceSplit(torch.from_numpy(x), torch.from_numpy(draws.integers(0, host.classes, samples)))
    return Case(bank, table, task, split, np.stack([draws.permutation(samples) for _ in range(2)]))


class Kinks(TorchFunctionMode):
    """Record the decisions of ReLU and pooling that are nearest to a tie; flip one of these decisions.

    If a rounding error decides on which side an input lies, both sides are right.
    """

    def __init__(self, flipped_index: tuple[int, int] | None = None, nearest_distances: int = 300) -> None:
        """`flipped_index`: the number of a call, and the index of a ReLU input or of a pooling window."""
        super().__init__()
        self.margins: list[tuple[float, tuple[int, int]]] = []  # margin, in root mean squares of its channel; place
        self._flipped = flipped_index
        self._nearest = nearest_distances
        self._calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func not in (F.relu, F.max_pool2d):
            return func(*args, **(kwargs or {}))
        call = self._calls
        x = args[0]
        self._calls += 1
        flipped_element = self._flipped[1] if self._flipped and self._flipped[0] == call else None
        return self._relu(call, x, flipped_element) if func is F.relu else self._pool(call, x, flipped_element)

    def _relu(self, call: int, x: torch.Tensor, flipped_element: int | None) -> torch.Tensor:
        self._note(call, x.detach().abs(), x.detach())
        active = x.detach() > 0
        if flipped_element is not None:
            active[np.unravel_index(flipped_element, active.shape)] ^= True
        return torch.where(active, x, 0.0 * x)

    def _pool(self, call: int, x: torch.Tensor, flipped_element: int | None) -> torch.Tensor:
        b, c, height, width = x.shape
        half_height = height // 2
        half_width = width // 2
        windows = (
            x[:, :, : 2 * half_height, : 2 * half_width]
            .reshape(b, c, half_height, 2, half_width, 2)
            .permute(0, 1, 2, 4, 3, 5)
            .flatten(4)
        )
        values, window_indices = windows.detach().topk(2)
        self._note(call, values[..., 0] - values[..., 1], x.detach())
        winners = windows.detach().argmax(4)
        if flipped_element is not None:
            index = np.unravel_index(flipped_element, winners.shape)
            winners[index] = window_indices[index][window_indices[index] != winners[index]][0]
        return windows.gather(4, winners[..., None])[..., 0]

    def _note(self, call: int, margins: torch.Tensor, x: torch.Tensor) -> None:
        """Record the smallest distances from a tie, except those of exactly 0, which occur behind dead units.

        Channels are the second axis of images, and the last two axes of a seed's features.
        """
        axes = (0, 2, 3) if x.dim() == 4 else (0, 1, 2)
        distances = (margins / (x.square().mean(axes, keepdim=True).sqrt() + 1e-30)).flatten()
        distances = torch.where(distances > 0.0, distances, torch.inf)
        nearest_distances = distances.topk(min(self._nearest, distances.numel()), largest=False)
        self.margins += [
            (float(m), (call, int(i))) for m, i in zip(nearest_distances.values, nearest_distances.indices, strict=True)
        ]
        self.margins = sorted(self.margins)[: self._nearest]


KINDS = ("near", "by one flip", "UNEXPLAINED")


@dataclass(frozen=True)
class Compared:
    """The errors of one network against float64, and against float64 with the best flip, if one was tried.

    `torch`: the error of torch in float32. If the kernel's error exceeds `times` that error, `torch` is raised to the
    median of torch's errors on 16 nearby cases, because rounding errors may cancel by luck. `floor`: the relative error
    that float32 has in a sum of some thousand terms that cancel, such as the gradient of a convolution.
    """

    network: int
    kernel: float
    torch: float
    flipped: float | None = None
    times: float = 10.0
    floor: float = 2e-5

    @property
    def kind(self) -> str:
        bound = max(self.times * self.torch, self.floor)
        if self.kernel <= bound:
            return "near"
        return "by one flip" if self.flipped is not None and self.flipped <= bound else "UNEXPLAINED"

    def __str__(self) -> str:
        flip_text = self.flipped if self.flipped is None else format(self.flipped, ".1e")
        return (
            f"network {self.network} {self.kind}: kernel {self.kernel:.1e}, torch float32 {self.torch:.1e}, "
            f"with one flip {flip_text}"
        )


def compared(case: Case, kernel: HostKernel) -> Iterator[Compared]:
    """Yield the errors of each network, trained by the kernel and by torch in float32, against float64."""
    kinks = Kinks()
    reference = case.in_float64(kinks)
    torch_trained = case.by_torch()
    kernel_trained = case.by_kernel(kernel)
    for network in range(2):
        rows = slice(network, network + 1)
        comparison = Compared(
            network, difference(kernel_trained, reference, rows), difference(torch_trained, reference, rows)
        )
        if comparison.kind != "near":
            neighbours = map(case.nearby, range(16))
            usual_rounding = float(
                np.median([difference(neighbour.by_torch(), neighbour.in_float64(), rows) for neighbour in neighbours])
            )
            comparison = replace(comparison, torch=max(comparison.torch, usual_rounding))
        for _, place in kinks.margins if comparison.kind != "near" else ():
            flip_difference = difference(kernel_trained, case.in_float64(Kinks(place, 1)), rows)
            if comparison.flipped is None or flip_difference < comparison.flipped:
                comparison = replace(comparison, flipped=flip_difference)
            if comparison.kind == "by one flip":
                break
        yield comparison
