"""The kernel against what it is to compute: plain layers, autograd and SGD, over any topology, stage and batch."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.compiler import IN_CI
from support.crowded import ENVS, crowded
from support.plain_step import Networks, alone, largest_difference, trained
from support.tensor_world import orders

from esper_ab.contracts import catalog
from esper_ab.contracts.settings import GrowthSettings
from workers.datasets.task import HostSpec, Split, Task
from workers.growth.bank.bank import Bank
from workers.growth.bank.native import Grown, NativeStep
from workers.growth.bank.split import DeviceSplit
from workers.growth.rules.seeds import SeedTable
from workers.layers.blueprint import (
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
from workers.native import library
from workers.tasks.digits import TASK as DIGITS
from workers.vocabulary import Algorithm, Stage

WIDTHS = [kernel.name for kernel in library.kernels() if not kernel.problem]
pytestmark = pytest.mark.skipif(not WIDTHS and not IN_CI, reason="the kernel was not built here")
OWN = (
    residual("relu_first", lambda c: norm_params(c), Relu(), Norm("norm")),
    residual(
        "wide",
        lambda c: (*norm_params(c, "first"), conv_params("conv", c + 3, c, 5), conv_params("back", c, c + 3, 1)),
        Norm("first"), Conv("conv"), Relu(), Conv("back"),
    ),
    residual(
        "towards_inside",
        lambda c: (conv_params("each", c, 1, 5), ParamSpec("scale", (1,)), conv_params("last", c, c, 3)),
        Conv("each", depthwise=True), Relu(), Towards("scale"), Relu(), Conv("last"),
    ),
    residual(
        "excited",
        lambda c: (
            conv_params("conv", c, c, 1), ParamSpec("squeeze", (c, 3), 0.5), ParamSpec("excite", (3, c), 0.5),
            ParamSpec("bias", (c,), 0.5), conv_params("each", c, 1, 3),
        ),
        Conv("conv"), Excite("squeeze", "excite", "bias"), Conv("each", depthwise=True),
    ),
)  # fmt: skip
BLUEPRINTS: tuple[Blueprint, ...] = (
    *(catalog.entry("workers.blueprints", name, "BLUEPRINT") for name in catalog.names("workers.blueprints")),
    *OWN,
)
STAGES = [Stage.GERMINATED, Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED]
HOSTS = st.builds(
    HostSpec,
    in_channels=st.integers(1, 3),
    base=st.sampled_from([4, 6, 8]),
    blocks=st.integers(1, 3),
    kernel=st.sampled_from([1, 3, 5]),
    pools=st.integers(0, 3),
    classes=st.integers(2, 5),
)
SIDES = st.tuples(st.integers(1, 9), st.integers(1, 9))
SEED = st.tuples(
    st.integers(-1, len(BLUEPRINTS) - 1), st.sampled_from(STAGES), st.sampled_from(Algorithm),
    st.sampled_from([0.0, 0.3, 1.0]), st.booleans(),
)  # fmt: skip


def world(
    host: HostSpec,
    sides: tuple[int, int],
    seeds: list[tuple[int, Stage, Algorithm, float, bool]],
    batch: int,
    samples: int,
) -> tuple[Networks, DeviceSplit]:
    """Two networks, the seeds dealt out to their slots; images with a mean that is not 0."""
    host = replace(host, pools=min(host.pools, host.blocks))
    task = replace(DIGITS, host=host, image=(host.in_channels, *sides), slots=tuple(map(str, range(host.blocks))))
    table = SeedTable.empty(2, host.blocks)
    for at, (blueprint, stage, algorithm, alpha, frozen) in zip(np.ndindex(2, host.blocks), seeds, strict=False):
        if blueprint >= 0:
            table.blueprint[at], table.stage[at], table.algorithm[at] = blueprint, stage, algorithm
            table.alpha[at], table.frozen[at] = alpha, frozen
    draws = np.random.default_rng(batch)
    x = (draws.standard_normal((samples, *task.image)) + 3.0).astype(np.float32)
    split = Split(x=x, y=draws.integers(0, host.classes, samples))
    rule = GrowthSettings(batch_size=batch, weight_decay=0.01)
    return Networks.drawn(task, BLUEPRINTS, rule, table, samples), DeviceSplit.of(
        split, torch.device("cpu"), torch.float32
    )


def grown(networks: Networks) -> Grown:
    rows = np.arange(len(networks.table.stage))
    return Grown(networks.host, networks.statistics, networks.seeds, networks.table, rows, rows)


def by_kernel(networks: Networks, split: DeviceSplit, order: np.ndarray, width: str) -> tuple[Networks, np.ndarray]:
    networks = copy.deepcopy(networks)
    blocks = tuple(range(networks.task.host.blocks))
    step = NativeStep(library.load(width), networks.task, blocks, networks.blueprints, networks.rule)
    takes_part = (networks.table.blueprint >= 0) & (networks.table.stage != Stage.GERMINATED)
    return networks, step.train(grown(networks), takes_part, split, order)[0]


@settings(max_examples=60)
@given(
    host=HOSTS, sides=SIDES, seeds=st.lists(SEED, min_size=6, max_size=6), batch=st.integers(2, 40),
    samples=st.integers(2, 40),
)  # fmt: skip
def test_a_step_is_the_plain_one(host, sides, seeds, batch, samples) -> None:
    """Of any network, seeds and batch, ragged ones among them: every parameter, momentum and moment, and the loss.

    Not where a rounding error decides, because two pixels of a pool are nearly equal or one is nearly 0.
    """
    assume(min(sides) >> min(host.pools, host.blocks) >= 1)
    assume(min(batch, samples) * (sides[0] >> host.pools) * (sides[1] >> host.pools) > 1)
    samples = min(batch, samples)
    networks, split = world(host, sides, seeds, batch, samples)
    order = np.stack([np.random.default_rng(env).permutation(samples) for env in range(2)])
    precise = DeviceSplit(split.x.double(), split.y)
    plain, plain_loss = trained(networks.copy(torch.float64), precise, order)
    torch.manual_seed(0)
    for _ in range(2):
        shaken, _loss = trained(networks.copy(torch.float64, noise=1e-6), precise, order)
        assume(largest_difference(shaken.state(), plain.state())[0] < 3e-5)
    found, loss = by_kernel(networks, split, order, WIDTHS[0])
    difference, where = largest_difference(found.state(), plain.state())
    assert difference < 1e-5, where
    assert loss == pytest.approx(plain_loss, rel=1e-6, abs=1e-6)
