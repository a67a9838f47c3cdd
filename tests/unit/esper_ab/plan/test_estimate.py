"""What a plan is said to cost: against measured episodes, and how it grows."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.plans.requests import asked, experiment, machine, planned

from esper_ab.contracts.machine import Machine, TaskFacts
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.kinds.growth.estimate import NATIVE, TORCH, epoch_s
from esper_ab.plan.estimate import Estimate, estimate
from esper_ab.plan.text import plan_text
from esper_ab.settings.experiment import AskedExperiment
from workers.kinds.growth.measures import MEASURES

HOSTS = json.loads((Path(__file__).resolve().parents[4] / "docs/evidence/benchmarks/hosts.json").read_text())
SPEED = HOSTS["machine"]["multiply_adds_per_s"]
SHAPES = {  # multiply-adds and values of one forward pass
    "digits": (8 * 64 + 8 * 16 * 16 + 16 * 32 * 4 + 320, 8 * 64 + 16 * 16 + 32 * 4),
    "cifar10": (3 * 8 * 9 * 1024 + 8 * 16 * 9 * 256 + 16 * 32 * 9 * 64 + 320, 8 * 1024 + 16 * 256 + 32 * 64),
}
BATCHES = {"digits": 64, "cifar10": 32}


def facts(name: str, train: int, validation: int) -> TaskFacts:
    adds, values = SHAPES[name]
    return TaskFacts(
        name=name,
        title="",
        measures=MEASURES,
        slots=("early",),
        sizes=(train, validation, 1),
        sample_values=1,
        host_params=1,
        host_multiply_adds=adds,
        host_values=values,
    )


def cost_of(asked: AskedExperiment, there: Machine) -> Estimate:
    plan = planned(asked, there)
    return estimate(plan.experiment, plan.lanes, there)


def title(one: dict) -> str:
    return f"{one['case']['task']}-{one['case']['n_envs']}-{one['kernel']}"


@pytest.mark.parametrize("measured", HOSTS["episode"], ids=title)
def test_an_episode_of_this_length_was_measured(measured: dict) -> None:
    """Within a factor of two: what is not, is to be fitted again (`scripts/bench tables`)."""
    name = measured["case"]["task"]
    task = facts(name, measured["train_samples"], measured["validation_samples"])
    rates = TORCH if measured["kernel"] == "torch" else NATIVE
    said = measured["steps"] * epoch_s(task, measured["case"]["n_envs"], BATCHES[name], SPEED, rates)
    assert 0.5 < said / measured["seconds"]["median"] < 2.0


def test_it_grows_with_what_is_asked() -> None:
    """Twice the replicates, episodes with their evaluation or steps take twice as long."""

    def duration(**changes: object) -> float:
        there = machine(cores=12, tasks=(facts("digits", 1024, 384),))
        return cost_of(experiment(**changes), there).duration_s

    once = duration(eval_episodes=8, episodes=2, steps=10, seeds=6, n_envs=8)
    assert duration(eval_episodes=24, episodes=4, steps=10, seeds=6, n_envs=8) == pytest.approx(2 * once)
    assert duration(eval_episodes=8, episodes=2, steps=20, seeds=6, n_envs=8) == pytest.approx(2 * once)
    assert duration(eval_episodes=16, episodes=2, steps=10, seeds=6, n_envs=16) > 1.5 * once


def test_several_devices_of_a_run_are_not_said_to_save_time() -> None:
    """One interpreter launches the kernels of all GPUs; on a CPU they take turns."""

    def slower_by(there: Machine) -> float:
        asks = (experiment(devices_per_run=k, n_envs=64, seeds=1) for k in (1, 2))
        one, two = (cost_of(asked, there).duration_s for asked in asks)
        return two / one

    assert slower_by(machine(gpus=4)) == pytest.approx(2)  # as long as it is measured with as many environments
    assert slower_by(machine(cores=4)) > 1


def test_more_lanes_than_cores_wait_for_one_another() -> None:
    slow, fast = (cost_of(experiment(), machine(cores)).duration_s for cores in (1, 2))
    assert slow == pytest.approx(2 * fast)


def test_memory_has_a_part_per_worker_and_a_part_per_environment() -> None:
    def memory(n_envs: int) -> int:
        return cost_of(experiment(n_envs=n_envs), machine()).memory_bytes

    assert memory(64) - memory(4) == 2 * 60 * (memory(5) - memory(4)) // 2
    assert memory(4) > 2 * (400 << 20)


def cost_of_environments(
    *controllers: str, width: int = 0, limit: int = 100, seen: int = 0, **changes: object
) -> tuple[Estimate, int]:
    """Return the estimate, and how many workers there are, for environments that show so many numbers."""
    name = "gym:CartPole-v1"
    returns = TaskMeasures(outcome=Measure(name="env_return", label="return", better="higher"))
    task = TaskFacts(
        name=name,
        title="",
        measures=returns,
        kind="gymnasium",
        step_s=1e-5,
        episode_steps=limit,
        observation_width=width,
        seen_steps=seen,
    )
    there = machine(rewards=("env",), controllers=("random",), tasks=(task,))
    asks = asked(*controllers, task=name, n_envs=8, steps=1000, margin=5.0, **changes)
    return cost_of(asks, there), len(planned(asks, there).lanes)


def memory_of_environments(*controllers: str, **how: object) -> float:
    cost, workers = cost_of_environments(*controllers, **how)  # type: ignore[arg-type]
    return cost.memory_bytes / workers


def test_an_environment_takes_as_long_as_the_episode_that_the_preflight_has_seen_end() -> None:
    def seconds(seen: int, *sets: str) -> tuple[float, str]:
        cost, _ = cost_of_environments("env", "random", limit=1000, seen=seen, sets=sets)
        return cost.duration_s - cost.start_up_s, cost.basis

    longest, said = seconds(0)
    assert "assuming episodes of 1000 steps; shorter" in said
    short, said = seconds(50)
    assert longest == pytest.approx(20 * short)
    assert "assuming episodes of 50 steps, as with random actions; up to 20 times as long if policies last" in said
    assert seconds(50, "gym.rollout=resets")[0] == pytest.approx(longest)  # its rollouts are as long as they are


def test_what_learners_of_environments_keep_of_observations_is_part_of_their_memory(tmp_path: Path) -> None:
    """Seven copies of what a rollout shows (tests/unit/workers/kinds/gymnasium/test_world.py)."""
    base = 400 << 20
    width = 210 * 160 * 3
    policy = 13 * 12 * 64**2 * 4
    assert memory_of_environments("random", "alike=random", width=width) == base
    for copies, how in (
        (7, {}),
        (7, {"outcome": "info:score"}),
        (8, {"outcome": f"{tmp_path}/own.py:outcome"}),
        (10 * 7, {"limit": 0}),
        (10 * 7, {"sets": ("gym.rollout=resets",)}),
    ):
        found = memory_of_environments("env", "random", width=width, **how)
        assert found == base + policy + copies * 100 * 8 * width * 4, how


def test_the_largest_policy_that_learns_is_part_of_the_memory_of_a_worker() -> None:
    def memory(*sets: str) -> int:
        return cost_of(asked("shaped", "simplified", sets=sets), machine()).memory_bytes

    small = memory()
    large = memory("policy.hidden=1024")
    blind = memory("policy.hidden=1024", "policy.memory=none")
    assert large - small == 2 * 13 * 12 * (1024**2 - 64**2) * 4
    assert large - blind == 2 * 13 * 8 * 1024**2 * 4
    assert memory("policy.hidden=1000000") > 2**49


def test_a_gpu_takes_what_was_measured_on_it_and_a_cpu_what_was_measured_there() -> None:
    def step_s(devices: tuple[str, ...], **measured: float) -> float:
        there = machine(gpus=2, multiply_adds_per_s=1e9 * measured.get("cpu", 1.0))
        timed = (replace(device, step_s=device.step_s * measured.get("gpu", 1.0)) for device in there.devices)
        there = replace(there, devices=tuple(timed))
        return cost_of(experiment(devices=devices), there).step_s

    on_gpus = step_s(("cuda",))
    on_cores = step_s(("cpu",))
    assert on_gpus == pytest.approx(0.01 * (1024 + 4 / 3 * 384) / 128)
    assert (step_s(("cuda",), cpu=9.0), step_s(("cuda",), gpu=3.0)) == pytest.approx((on_gpus, 3 * on_gpus))
    assert step_s(("cpu",), gpu=3.0) == on_cores > step_s(("cpu",), cpu=9.0)


def test_workers_that_start_are_counted() -> None:
    """All load torch at the same time on the cores that there are."""

    def found(cores: int, start_s: float) -> Estimate:
        plan = planned(experiment(devices=("cpu:0", "cpu:1")), machine())
        return estimate(plan.experiment, plan.lanes, machine(cores=cores, start_s=start_s))

    assert found(2, 5.0).start_up_s == pytest.approx(5.0)
    assert found(1, 5.0).start_up_s == pytest.approx(10.0)
    assert found(2, 5.0).duration_s == pytest.approx(found(2, 0.0).duration_s + 5.0)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "under 10 s"),
        (9.9, "under 10 s"),
        (10.4, "about 10 s"),
        (61.0, "about 61 s"),
        (600.0, "about 10 min"),
    ],
)
def test_nothing_takes_no_time(seconds: float, said: str) -> None:
    plan = planned(experiment(), machine())
    cost = cost_of(experiment(), machine())
    text = plan_text(plan, machine(), replace(cost, duration_s=seconds), Path("runs/x"), 200)
    assert f"estimate: {said} including the start of the workers, " in text
