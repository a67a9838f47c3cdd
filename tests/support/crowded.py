"""A bank in which everything occurs: every blueprint, stage and algorithm, frozen seeds and empty slots among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from esper_ab.contracts.settings import GrowthSettings, HostKernel
from support.tensor_world import env_path, plant
from workers.datasets.task import Split, Task
from workers.growth.bank.bank import Bank
from workers.growth.rules.seeds import SeedTable
from workers.growth.samples import DeviceSplit
from workers.vocabulary import Algorithm, Stage

ENVS, BATCH = 15, 16


def crowded(
    task: Task, device: torch.device, samples: int, dtype: torch.dtype = torch.float32, kernel: HostKernel = "torch",
    **growth: Any,
) -> tuple[Bank, SeedTable, DeviceSplit]:  # fmt: skip
    """ENVS environments of `task` on `device`, and random images of its shape; keywords change GrowthSettings."""
    images = np.random.default_rng(0).standard_normal((samples, *task.image)).astype(np.float32)
    labels = np.arange(samples, dtype=np.int64) % task.host.classes
    split = DeviceSplit.of(Split(x=images, y=labels), device, dtype)
    settings = GrowthSettings(**{"batch_size": BATCH, **growth})
    bank = Bank(task, task.slots, np.arange(ENVS), settings, split.x, kernel)
    bank.begin_episode([env_path(env) for env in range(ENVS)])
    table = SeedTable.empty(ENVS, len(task.slots))
    for env in range(ENVS - 1):
        for slot in range(1 + env % len(task.slots)):
            blueprint, algorithm = (env + 3 * slot) % 7, (env // 2 + slot) % len(Algorithm)
            plant(bank, table, env, slot, blueprint, alpha=0.5 * (env % 3), algorithm=algorithm)
    table.stage[4, 0], table.frozen[6, 0] = Stage.FOSSILIZED, True
    bank.settle()
    return bank, table, split
