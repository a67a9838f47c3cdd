"""A training step never waits for its device, and never mixes two: shown without a GPU, on tensors that hold no data.

On torch's meta device every operation knows shapes, types and devices and no value: whatever asks for a value, or for a
size that depends on one, or joins a tensor of another device, fails. What may wait is `Tensor.cpu`, and it is counted.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from support.tensor_world import env_path, orders, plant

from esper_ab.contracts.settings import GrowthSettings
from workers.growth.bank import Bank, DeviceSplit
from workers.growth.loss_scale import LossScale
from workers.growth.seeds import SeedTable
from workers.tasks._task import Split
from workers.tasks.synthetic import TASK
from workers.vocabulary import Algorithm, Stage

ENVS, BATCH = 9, 16
META = torch.device("meta")
_SHAPES = torch.library.Library("aten", "IMPL", "Meta")  # of operations that torch knows no shapes of


def _moments(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, momentum: float) -> tuple[torch.Tensor, ...]:
    assert mean is None or mean.device == var.device == x.device
    return tuple(x.new_empty(x.shape[1], dtype=torch.float32) for _ in range(2))


def _sgd(values: list[torch.Tensor], *others: list[torch.Tensor], **_rule: object) -> None:
    assert all(one.device == value.device for other in others for one, value in zip(other, values, strict=True))


_SHAPES.impl("batch_norm_update_stats", _moments)
_SHAPES.impl("_fused_sgd_", _sgd)


def on_no_device(amp: str, samples: int) -> tuple[Bank, SeedTable, DeviceSplit]:
    """Every blueprint, stage and algorithm, frozen seeds and empty slots among them."""
    images = np.zeros((samples, *TASK.image), np.float32)
    split = DeviceSplit.of(Split(x=images, y=np.zeros(samples, np.int64)), META, torch.float32)
    bank = Bank(TASK, TASK.slots, np.arange(ENVS), GrowthSettings(batch_size=BATCH, amp=amp), split.x)  # type: ignore[arg-type]
    bank.begin_episode([env_path(env) for env in range(ENVS)])
    table = SeedTable.empty(ENVS, len(TASK.slots))
    for env in range(ENVS - 1):
        for slot in range(1 + env % 2):
            blueprint, algorithm = (env + 3 * slot) % 7, (env + slot) % len(Algorithm)
            plant(bank, table, env, slot, blueprint, alpha=0.5 * (env % 3), algorithm=algorithm)
    table.stage[4, 0], table.frozen[6, 0] = Stage.FOSSILIZED, True
    return bank, table, split


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often something was fetched from the device; what comes is zeros."""
    counted: Counter[str] = Counter()

    def cpu(self: torch.Tensor) -> torch.Tensor:
        counted["cpu"] += 1
        return torch.zeros(self.shape, dtype=self.dtype)

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    return counted


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("amp", ["off", "bf16", "fp16"])
def test_an_epoch_waits_once_however_many_steps_it_has(waits: Counter[str], amp: str, deterministic: bool) -> None:
    torch.use_deterministic_algorithms(deterministic)
    try:
        for steps in (1, 5):
            bank, table, split = on_no_device(amp, steps * BATCH)
            scale = LossScale() if amp == "fp16" else None
            waits.clear()
            loss, _ = bank.train_epoch(table, np.arange(ENVS), split, orders(ENVS, steps * BATCH), scale)
            assert loss.shape == (ENVS,)
            assert waits == {"cpu": 1}
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_validation_with_counterfactuals_waits_twice(waits: Counter[str]) -> None:
    """Once for what was right, once for the losses, whatever the number of samples."""
    for samples in (BATCH, 300):
        bank, table, split = on_no_device("off", samples)
        waits.clear()
        found = bank.measure(table, np.arange(ENVS), split, ablate=True)
        assert found.loss.shape == (ENVS,)
        assert waits == {"cpu": 2}


@pytest.mark.parametrize(
    "asks", [lambda t: t.sum().item(), lambda t: t.nonzero(), lambda t: t[t > 0], lambda t: t + torch.zeros(3)]
)
def test_the_method_finds_what_it_looks_for(asks) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        asks(torch.empty(3, device=META))
