"""Host training in bfloat16: what is computed in it, and what is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.tensor_world import device_data, make_bank, orders, plant

from workers.growth.bank.bank import Bank
from workers.growth.rules.seeds import SeedTable
from workers.growth.samples import DeviceSplit
from workers.vocabulary import Algorithm

BATCH = 64


def bank_in(dtype: torch.dtype, n_envs: int) -> tuple[Bank, SeedTable]:
    """A bank in float32 that trains in `dtype`."""
    bank, table = make_bank(n_envs, torch.float32)
    bank._computed = dtype
    return bank, table


def one_batch() -> DeviceSplit:
    data = device_data(torch.float32)
    return DeviceSplit(data.train.x[:BATCH].contiguous(), data.train.y[:BATCH])


def relative(mine: torch.Tensor, theirs: torch.Tensor) -> float:
    a, b = mine.detach().double(), theirs.detach().double()
    return float((a - b).norm() / b.norm())


def test_every_blueprint_and_style_trains_as_in_float32_nearly() -> None:
    """One step of 7 environments with two seeds each; parameters and momentum are float32 all the time."""
    found = []
    for dtype in (torch.bfloat16, torch.float32):
        bank, table = bank_in(dtype, 7)
        for env in range(7):
            for slot in range(2):
                plant(bank, table, env, slot, (env + 3 * slot) % 7, alpha=0.5, algorithm=(env + slot) % len(Algorithm))
        loss, _ = bank.train_epoch(table, np.arange(7), one_batch(), orders(7, BATCH))
        stacks = [bank.host, *bank._seeds.values()]
        assert all(s.values.dtype == s.momentum.dtype == torch.float32 for s in stacks)
        found.append((loss, torch.cat([s.momentum.flatten() for s in stacks])))
    (half, mine), (single, theirs) = found
    assert half == pytest.approx(single, rel=0.01)
    assert 0.0 < relative(mine, theirs) < 0.25


def test_measurements_are_in_float32() -> None:
    """Validation of a bank that trains in bfloat16 is to the bit that of one that does not."""
    results = []
    for dtype in (torch.bfloat16, torch.float32):
        bank, table = bank_in(dtype, 2)
        plant(bank, table, 0, 0, 4, alpha=0.5)
        results.append(bank.measure(table, np.arange(2), one_batch(), ablate=True))
    assert np.array_equal(results[0].loss, results[1].loss)
    assert np.array_equal(results[0].accuracy, results[1].accuracy)
