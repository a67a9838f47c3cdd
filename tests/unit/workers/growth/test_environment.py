"""A run whose environments are spread over two devices computes what it computes on one."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.tensor_world import device_data

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import ControllerSettings, GrowthSettings, HostKernel, RewardSettings
from workers.controllers.random import make as make_random
from workers.controllers.schedule import make as make_schedule
from workers.datasets.task import Context, Split, Splits
from workers.environments import Stopwatch, paths_below
from workers.growth.environment import EnvSpec, GrowthEnv
from workers.growth.samples import DeviceData
from workers.native.library import kernels
from workers.tasks.synthetic import TASK

ENVS, STEPS = 5, 8
ONE, TWO = ("cpu:0",) * ENVS, tuple(f"cpu:{env % 2}" for env in range(ENVS))  # as the plan deals them out


def environments(devices: tuple[str, ...], dtype: torch.dtype) -> GrowthEnv:
    spec = EnvSpec(
        task=TASK, slots=TASK.slots, steps=STEPS, env_devices=devices, growth=GrowthSettings(batch_size=64),
        reward=RewardSettings(),
    )  # fmt: skip
    return GrowthEnv(spec, dict.fromkeys(devices, device_data(dtype)), Stopwatch())


def grown(devices: tuple[str, ...], dtype: torch.dtype, steps: int) -> tuple[GrowthEnv, np.ndarray]:
    """Training, validation and random decisions, the same on every device; the measurements of every step."""
    env = environments(devices, dtype)
    controller = make_random(ControllerSettings(name="random"), TASK.slots, env.spec.growth.blueprints)
    seen = []
    for step in range(steps):
        view = env.advance() if step else env.begin(paths_below(RngPath(3) / "train" / 0, ENVS))
        m = env._measurement
        seen.append(np.column_stack((m.train_loss, m.train_acc, m.val_loss, m.val_acc, m.contribution, m.all_off_acc)))
        decisions = controller.decide(view, env.uniforms())
        env.facts(decisions)
        env.execute(decisions)
    return env, np.stack(seen)


def test_an_episode_with_seeds_is_that_on_one_device() -> None:
    (one, alone), (two, spread) = (grown(devices, torch.float64, STEPS) for devices in (ONE, TWO))
    assert one.lifecycle.table.present.any()
    np.testing.assert_allclose(spread, alone, rtol=1e-9, atol=1e-9, equal_nan=True)
    np.testing.assert_allclose(two.held_out_accuracy(), one.held_out_accuracy())


def elsewhere() -> GrowthEnv:
    """On two devices that are no CPU; torch lets its "meta" device hold tensors and compute nothing."""
    env = environments(TWO, torch.float64)
    away = DeviceData.of(TASK.load(""), torch.device("meta"))
    env._banks = [(bank, [away]) for bank, _ in env._banks]
    return env


def thread_of(bank, data, rows):
    return [(np.arange(len(rows)), threading.current_thread())]


def test_devices_that_are_no_cpu_work_at_the_same_time_and_results_come_in_order() -> None:
    """Each waits for the other: one after the other would break the barrier."""
    env = elsewhere()
    both = threading.Barrier(2, timeout=120)

    def work(bank, data, rows):
        both.wait()
        return [(np.arange(len(rows)), rows.tolist())]

    found = env._on_every_context(work, np.array([True, True, True, False, False]))
    assert [(envs.tolist(), rows) for envs, rows in found] == [([0, 2], [0, 1]), ([1], [0])]


def test_cpu_devices_take_turns_in_the_thread_of_the_worker() -> None:
    env = environments(TWO, torch.float64)
    found = env._on_every_context(thread_of, np.ones(ENVS, bool))
    assert [(envs.tolist(), thread) for envs, thread in found] == [
        ([0, 2, 4], threading.main_thread()), ([1, 3], threading.main_thread()),
    ]  # fmt: skip


def test_a_device_without_a_live_environment_does_nothing() -> None:
    env = elsewhere()
    found = env._on_every_context(thread_of, np.array([0, 1, 0, 1, 0], bool))
    assert [(envs.tolist(), thread) for envs, thread in found] == [([1, 3], threading.main_thread())]
    assert env._on_every_context(thread_of, np.zeros(ENVS, bool)) == []


@pytest.mark.parametrize("there", [lambda: environments(TWO, torch.float64), elsewhere], ids=["cpu", "elsewhere"])
def test_an_error_on_one_device_is_the_run_s(there) -> None:
    env = there()

    def work(bank, data, rows):
        if 1 in bank.envs:
            raise ValueError("on the second")

    with pytest.raises(ValueError, match="on the second"):
        env._on_every_context(work, np.ones(ENVS, bool))


FAMILY = replace(
    TASK, name="family", sizes=(64, 32, 32),
    contexts=(Context(name="few", images=(8, 16)), Context(name="all", images=(64, 64))),
)


def family_splits(changed_context: int | None = None) -> Splits:
    """Samples of `synthetic` as those of two contexts; the images of one may be others."""
    whole = TASK.load("")

    def part(split: Split, size: int) -> Split:
        x = split.x[: 2 * size].copy()
        if changed_context is not None:
            x[changed_context * size : (changed_context + 1) * size] += 1.0
        return Split(x=x, y=split.y[: 2 * size])

    parts = (whole.train, whole.validation, whole.test)
    train, validation, test = (part(split, size) for split, size in zip(parts, FAMILY.sizes, strict=True))
    return Splits(train=train, validation=validation, test=test)


def family_grown(
    envs: list[int], splits: Splits, kernel: HostKernel = "torch", dtype: torch.dtype = torch.float64
) -> tuple[np.ndarray, np.ndarray]:
    """Contexts [E], and measurements and held-out accuracy [E, number] of hosts that a schedule grows."""
    spec = EnvSpec(
        task=FAMILY, slots=TASK.slots, steps=5, env_devices=("cpu",) * len(envs), growth=GrowthSettings(batch_size=32),
        reward=RewardSettings(), kernel=kernel,
    )  # fmt: skip
    env = GrowthEnv(spec, {"cpu": DeviceData.of(splits, torch.device("cpu"), dtype)}, Stopwatch())
    view = env.begin([RngPath(8) / "env" / number for number in envs])  # of both contexts
    controller = make_schedule(ControllerSettings(name="schedule"), TASK.slots, spec.growth.blueprints)
    controller.begin_episode(len(envs))
    seen = []
    while view.alive.any():
        m = env._measurement
        seen.append(np.column_stack((m.train_loss, m.train_acc, m.val_loss, m.val_acc, m.contribution)))
        _, view = env.step(controller.decide(view, env.uniforms()))
    return env._shares.context, np.column_stack([*seen, env.held_out_accuracy()])


def test_a_host_of_a_family_grows_as_it_would_alone() -> None:
    contexts, together = family_grown(list(range(4)), family_splits())
    assert set(contexts) == {0, 1}
    for number, row in enumerate(together):
        np.testing.assert_allclose(family_grown([number], family_splits())[1][0], row, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("changed", [0, 1])
def test_a_host_of_a_family_sees_its_own_context_alone(changed: int) -> None:
    contexts, before = family_grown(list(range(4)), family_splits())
    after = family_grown(list(range(4)), family_splits(changed))[1]
    same = (before == after) | np.isnan(before)
    assert same[contexts != changed].all()
    assert (~same[contexts == changed]).any(axis=1).all()


def test_the_kernel_grows_a_family_as_torch_does() -> None:
    width = next(kernel.name for kernel in kernels() if not kernel.problem)
    by_torch, by_kernel = (
        family_grown(list(range(4)), family_splits(), kernel, torch.float32)[1] for kernel in ("torch", width)
    )
    losses = np.arange(4) * (by_torch.shape[1] // 5)  # of training, in the first epochs
    np.testing.assert_allclose(by_kernel[:, losses], by_torch[:, losses], rtol=1e-4)
