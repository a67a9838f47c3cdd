"""A run on two devices gives the results of one device; so does a family of hosts."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.worlds.tensor_world import device_data

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import ControllerSettings, GrowthSettings, HostKernel, RewardSettings
from workers.environments import Controller, Stopwatch, paths_below
from workers.kinds.growth.controllers.random import make as make_random
from workers.kinds.growth.controllers.schedule import make as make_schedule
from workers.kinds.growth.datasets.task import Context, Split, Splits, Task
from workers.kinds.growth.environment import EnvSpec, GrowthEnv
from workers.kinds.growth.samples import DeviceData
from workers.kinds.growth.tasks.synthetic import TASK
from workers.native.library import kernels

ENVS = 5
ONE_DEVICE, TWO_DEVICES = (
    ("cpu:0",) * ENVS,
    tuple(f"cpu:{env % 2}" for env in range(ENVS)),
)  # as the plan deals them out


def environments(
    devices: tuple[str, ...], data: DeviceData, task: Task = TASK, steps: int = 8, kernel: HostKernel = "torch"
) -> GrowthEnv:
    spec = EnvSpec(
        task=task,
        slots=TASK.slots,
        steps=steps,
        env_devices=devices,
        kernel=kernel,
        reward=RewardSettings(),
        growth=GrowthSettings(batch_size=task.sizes[0] // 4),
    )
    return GrowthEnv(spec, dict.fromkeys(devices, data), Stopwatch())


def grown(env: GrowthEnv, controller: Controller, paths: list[RngPath]) -> np.ndarray:
    """Measurements of every step of an episode, and held-out accuracy [E, number]."""
    view = env.begin(paths)
    measurements = []
    controller.begin_episode(len(paths))
    while view.alive.any():
        m = env._measurement
        measurements.append(
            np.column_stack((m.train_loss, m.train_acc, m.val_loss, m.val_acc, m.contribution, m.all_off_acc))
        )
        _, view = env.step(controller.decide(view, env.uniforms()))
    return np.column_stack([*measurements, env.held_out_accuracy()])


def test_an_episode_on_two_devices_equals_an_episode_on_one_device() -> None:
    results = []
    for devices in (ONE_DEVICE, TWO_DEVICES):
        env = environments(devices, device_data(torch.float64))
        controller = make_random(ControllerSettings(name="random"), TASK.slots, env.spec.growth.blueprints)
        results.append(grown(env, controller, paths_below(RngPath(3) / "train" / 0, ENVS)))
        assert env.lifecycle.table.present.any()
    np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-9, equal_nan=True)


def on_cpus() -> GrowthEnv:
    return environments(TWO_DEVICES, device_data(torch.float64))


def on_meta_devices() -> GrowthEnv:
    """On two devices that are no CPU; torch lets its "meta" device hold tensors and compute nothing."""
    env = on_cpus()
    meta_data = DeviceData.of(TASK.load(""), torch.device("meta"))
    env._banks = [(bank, [meta_data]) for bank, _ in env._banks]
    return env


def threads(env: GrowthEnv, *alive_envs: int) -> list[tuple[list[int], threading.Thread]]:
    """Which thread worked for which environments."""

    def work(bank, data, rows):
        return [(np.arange(len(rows)), threading.current_thread())]

    return [(envs.tolist(), thread) for envs, thread in env._call_per_bank(work, np.isin(range(ENVS), alive_envs))]


def test_several_gpus_work_concurrently() -> None:
    """Each waits for the other: one after the other would break the barrier."""
    barrier = threading.Barrier(2, timeout=120)

    def work(bank, data, rows):
        barrier.wait()
        return [(np.arange(len(rows)), rows.tolist())]

    results = on_meta_devices()._call_per_bank(work, np.array([True, True, True, False, False]))
    assert [(envs.tolist(), rows) for envs, rows in results] == [([0, 2], [0, 1]), ([1], [0])]


def test_cpu_devices_work_in_the_main_thread() -> None:
    main_thread = threading.main_thread()
    assert threads(on_cpus(), 0, 1, 2, 3, 4) == [([0, 2, 4], main_thread), ([1, 3], main_thread)]
    assert threads(on_meta_devices(), 1, 3) == [([1, 3], main_thread)]
    assert threads(on_meta_devices()) == []


@pytest.mark.parametrize("make_environment", [on_cpus, on_meta_devices])
def test_an_error_on_one_of_several_devices_fails_the_run(make_environment) -> None:
    def work(bank, data, rows):
        if 1 in bank.envs:
            raise ValueError("on the second")

    with pytest.raises(ValueError, match="on the second"):
        make_environment()._call_per_bank(work, np.ones(ENVS, bool))


FAMILY = replace(
    TASK,
    name="family",
    sizes=(64, 32, 32),
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
    *envs: int, changed_context: int | None = None, kernel: HostKernel = "torch", dtype: torch.dtype = torch.float64
) -> tuple[np.ndarray, np.ndarray]:
    """Contexts [E], and what is measured [E, number] of hosts that a schedule grows."""
    data = DeviceData.of(family_splits(changed_context), torch.device("cpu"), dtype)
    env = environments(("cpu",) * len(envs), data, FAMILY, steps=5, kernel=kernel)
    controller = make_schedule(ControllerSettings(name="schedule"), TASK.slots, env.spec.growth.blueprints)
    measurements = grown(env, controller, [RngPath(8) / "env" / number for number in envs])  # of both contexts
    return env._shares.context, measurements


def test_hosts_of_a_task_family_grow_independently() -> None:
    contexts, all_measurements = family_grown(*range(4))
    assert set(contexts) == {0, 1}
    for number, row in enumerate(all_measurements):
        np.testing.assert_allclose(family_grown(number)[1][0], row, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("changed_context", [0, 1])
def test_a_host_of_a_task_family_sees_only_its_own_context(changed_context: int) -> None:
    contexts, expected = family_grown(*range(4))
    changed_measurements = family_grown(*range(4), changed_context=changed_context)[1]
    is_unchanged = (expected == changed_measurements) | np.isnan(expected)
    assert is_unchanged[contexts != changed_context].all()
    assert (~is_unchanged[contexts == changed_context]).any(axis=1).all()


def test_the_kernel_and_torch_grow_a_task_family_alike() -> None:
    width = next(kernel.name for kernel in kernels() if not kernel.problem)
    results = [family_grown(*range(4), kernel=kernel, dtype=torch.float32)[1] for kernel in (width, "torch")]
    losses = np.arange(4) * (results[0].shape[1] // 5)  # of training, in the first epochs
    np.testing.assert_allclose(results[0][:, losses], results[1][:, losses], rtol=1e-4)
