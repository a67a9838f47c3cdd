"""Small banks and sessions for tests with tensors: the synthetic task, few environments, short episodes."""

import functools
from typing import Any

import numpy as np
import torch

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import GrowthSettings, HostKernel, RewardSettings
from support.plans.worker_orders import run_order, settings_from
from workers.environments import Stopwatch
from workers.kinds.growth.bank.bank import Bank
from workers.kinds.growth.datasets.task import Split, Task
from workers.kinds.growth.environment import EnvSpec, GrowthEnv
from workers.kinds.growth.kind import GrowthWorld
from workers.kinds.growth.rules.seeds import SeedTable
from workers.kinds.growth.samples import DeviceData, DeviceSplit
from workers.kinds.growth.tasks.synthetic import TASK
from workers.kinds.growth.vocabulary import Algorithm, Stage
from workers.run.session import Session

ENVS = 15  # of a crowded bank
BATCH = 16  # of a crowded bank


@functools.cache
def device_data(dtype: torch.dtype = torch.float32) -> DeviceData:
    return DeviceData.of(TASK.load(""), torch.device("cpu"), dtype)


def make_env(n_envs: int, steps: int, dtype: torch.dtype = torch.float64, **growth: Any) -> GrowthEnv:
    settings = GrowthSettings(**{"batch_size": 64, **growth})
    spec = EnvSpec(
        task=TASK,
        slots=TASK.slots,
        steps=steps,
        env_devices=("cpu:0",) * n_envs,
        growth=settings,
        reward=RewardSettings(),
    )
    return GrowthEnv(spec, {"cpu:0": device_data(dtype)}, Stopwatch())


def make_bank(n_envs: int, dtype: torch.dtype = torch.float64) -> tuple[Bank, SeedTable]:
    """Return a bank of new hosts, and an empty table of seed modules with a row for each of their slots."""
    samples = device_data(dtype).train.x
    bank = Bank(TASK, TASK.slots, np.arange(n_envs), GrowthSettings(batch_size=64), samples)
    bank.begin_episode([env_path(env) for env in range(n_envs)])
    return bank, SeedTable.empty(n_envs, len(TASK.slots))


def env_path(env: int) -> RngPath:
    return RngPath(11) / "env" / env


def plant(
    bank: Bank, table: SeedTable, env: int, slot: int, blueprint: int, *, alpha: float, algorithm: int = 0
) -> None:
    """Plant a seed that blends at `alpha`, or incubates if that is 0."""
    bank.germinate(env, slot, blueprint, env_path(env) / "slot" / slot)
    table.stage[env, slot] = Stage.BLENDING if alpha > 0 else Stage.TRAINING
    table.alpha[env, slot] = alpha
    table.blueprint[env, slot] = blueprint
    table.algorithm[env, slot] = algorithm


def crowded(
    task: Task,
    device: torch.device,
    samples: int,
    dtype: torch.dtype = torch.float32,
    kernel: HostKernel = "torch",
    **growth: Any,
) -> tuple[Bank, SeedTable, DeviceSplit]:
    """Return a bank with every blueprint, stage and algorithm, with frozen seeds and with empty slots.

    ENVS environments of `task` on `device`, and random images of its shape; keywords change GrowthSettings.
    """
    images = np.random.default_rng(0).standard_normal((samples, *task.image)).astype(np.float32)
    labels = np.arange(samples, dtype=np.int64) % task.host.classes
    split = DeviceSplit.of(Split(x=images, y=labels), device, dtype)
    settings = GrowthSettings(**{"batch_size": BATCH, **growth})
    bank = Bank(task, task.slots, np.arange(ENVS), settings, split.x, kernel)
    bank.begin_episode([env_path(env) for env in range(ENVS)])
    table = SeedTable.empty(ENVS, len(task.slots))
    for env in range(ENVS - 1):
        for slot in range(1 + env % len(task.slots)):
            blueprint = (env + 3 * slot) % 7
            algorithm = (env // 2 + slot) % len(Algorithm)
            plant(bank, table, env, slot, blueprint, alpha=0.5 * (env % 3), algorithm=algorithm)
    table.stage[4, 0], table.frozen[6, 0] = Stage.FOSSILIZED, True
    bank.settle()
    return bank, table, split


def orders(n_envs: int, samples: int) -> np.ndarray:
    draws = [(env_path(env) / "order").generator().random(samples) for env in range(n_envs)]
    return np.argsort(np.stack(draws), axis=1, kind="stable")


def make_session(**changes: Any) -> Session:
    """Return a run of two short episodes.

    Keywords change RunSpec fields, `mode`, `controller` and tables of settings.
    """
    usual_tables = {"reward": {"mode": changes.pop("mode", "shaped")}, "growth": {"batch_size": 64}}
    settings = settings_from(changes, usual_tables)
    modes = ("shaped", "simplified", "sparse", "minimal")
    fields = {"task": "synthetic", "slots": TASK.slots, "eval_reward_modes": modes}
    spec = run_order(settings, **fields | changes)
    return Session(spec, GrowthWorld(spec, TASK, dict.fromkeys(spec.env_devices, device_data())))


def random(*shape: int, rng_seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(rng_seed), dtype=torch.float64)


def quiet(_step: int) -> None:
    """A no-op callback for sessions."""
