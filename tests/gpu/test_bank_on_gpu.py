"""Banks on a real GPU: against the CPU, without waiting, short of memory, in half precision. Skips without CUDA."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.tensor_world import device_data, env_path, orders, plant

from esper_ab.contracts.settings import GrowthSettings
from workers.growth.bank import Bank, DeviceSplit
from workers.growth.loss_scale import LossScale
from workers.growth.seeds import SeedTable
from workers.tasks.synthetic import TASK
from workers.vocabulary import Algorithm

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
ENVS, SAMPLES = 14, 128


def crowded(device: str, amp: str = "off") -> tuple[Bank, SeedTable, DeviceSplit]:
    """Every blueprint in both slots, every algorithm."""
    data = device_data(torch.float32)
    split = DeviceSplit(data.train.x[:SAMPLES].to(device), data.train.y[:SAMPLES].to(device))
    bank = Bank(TASK, TASK.slots, np.arange(ENVS), GrowthSettings(batch_size=64, amp=amp), split.x)  # type: ignore[arg-type]
    bank.begin_episode([env_path(env) for env in range(ENVS)])
    table = SeedTable.empty(ENVS, len(TASK.slots))
    for env in range(ENVS):
        for slot in range(2):
            plant(bank, table, env, slot, (env + 3 * slot) % 7, alpha=0.5, algorithm=(env + slot) % len(Algorithm))
    return bank, table, split


def epoch(bank: Bank, table: SeedTable, split: DeviceSplit, scale: LossScale | None = None) -> np.ndarray:
    return bank.train_epoch(table, np.arange(ENVS), split, orders(ENVS, SAMPLES), scale)[0]


def test_an_epoch_and_a_validation_are_those_of_the_cpu() -> None:
    found = {}
    for device in ("cpu", "cuda:0"):
        bank, table, split = crowded(device)
        loss = epoch(bank, table, split)
        found[device] = loss, bank.measure(table, np.arange(ENVS), split, ablate=True).loss, bank.host.values.cpu()
    for mine, theirs in zip(found["cuda:0"], found["cpu"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("amp", ["off", "bf16", "fp16"])
def test_no_step_waits_for_the_device(amp: str) -> None:
    if amp == "bf16" and not torch.cuda.is_bf16_supported():
        pytest.skip("this GPU has no bfloat16")
    bank, table, split = crowded("cuda:0", amp)
    scale = LossScale() if amp == "fp16" else None
    epoch(bank, table, split, scale)  # kernels and workspaces are loaded
    part = None if scale is None else scale.part(bank.host.values)
    torch.cuda.set_sync_debug_mode("error")
    try:
        measured = bank._train_rows(table, np.arange(ENVS), split, orders(ENVS, SAMPLES), part)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.isfinite(measured).all()


@pytest.mark.parametrize("amp", ["off", "bf16", "fp16"])
def test_memory_pressure_changes_no_bit(amp: str) -> None:
    """Freed blocks are handed out again at once, and their old contents overwritten: a tensor that is still read by
    somebody would change."""
    if amp == "bf16" and not torch.cuda.is_bf16_supported():
        pytest.skip("this GPU has no bfloat16")
    torch.use_deterministic_algorithms(True)
    results = []
    try:
        for pressed in (False, True):
            torch.cuda.empty_cache()
            bank, table, split = crowded("cuda:0", amp)
            scale = LossScale() if amp == "fp16" else None
            filler = []
            if pressed:
                free, _ = torch.cuda.mem_get_info()
                filler = [torch.empty(max(1, free - (512 << 20)), dtype=torch.uint8, device="cuda:0")]
            for _ in range(3):
                loss = epoch(bank, table, split, scale)
                if pressed:
                    held = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
                    torch.full((max(1, held // 2),), 255, dtype=torch.uint8, device="cuda:0")
            results.append((loss, bank.host.values.cpu()))
            del filler
    finally:
        torch.use_deterministic_algorithms(False)
    assert np.array_equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_half_precision_trains_as_float32_nearly(amp: str) -> None:
    if amp == "bf16" and not torch.cuda.is_bf16_supported():
        pytest.skip("this GPU has no bfloat16")
    half, single = crowded("cuda:0", amp), crowded("cuda:0")
    scale = LossScale() if amp == "fp16" else None
    np.testing.assert_allclose(epoch(*half, scale), epoch(*single), rtol=0.02)
