"""Estimated costs of a plan: compared with measured episodes, and their growth."""

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
    multiply_adds, values = SHAPES[name]
    return TaskFacts(
        name=name,
        title="",
        measures=MEASURES,
        slots=("early",),
        sizes=(train, validation, 1),
        sample_values=1,
        host_params=1,
        host_multiply_adds=multiply_adds,
        host_values=values,
    )


def cost_of(request: AskedExperiment, this_machine: Machine) -> Estimate:
    plan = planned(request, this_machine)
    return estimate(plan.experiment, plan.lanes, this_machine)


def title(episode: dict) -> str:
    return f"{episode['case']['task']}-{episode['case']['n_envs']}-{episode['kernel']}"


@pytest.mark.parametrize("measurement", HOSTS["episode"], ids=title)
def test_the_estimate_of_an_episode_is_within_a_factor_of_two_of_the_measurement(measurement: dict) -> None:
    """Refit the rates if it is not (`scripts/bench tables`)."""
    name = measurement["case"]["task"]
    task = facts(name, measurement["train_samples"], measurement["validation_samples"])
    rates = TORCH if measurement["kernel"] == "torch" else NATIVE
    estimated_s = measurement["steps"] * epoch_s(task, measurement["case"]["n_envs"], BATCHES[name], SPEED, rates)
    assert 0.5 < estimated_s / measurement["seconds"]["median"] < 2.0


def test_the_duration_is_proportional_to_episodes_and_steps() -> None:
    """Twice the episodes with their evaluation, or twice the steps, take twice as long."""

    def duration(**changes: object) -> float:
        this_machine = machine(cores=12, tasks=(facts("digits", 1024, 384),))
        return cost_of(experiment(**changes), this_machine).duration_s

    single_duration = duration(eval_episodes=8, episodes=2, steps=10, seeds=6, n_envs=8)
    assert duration(eval_episodes=24, episodes=4, steps=10, seeds=6, n_envs=8) == pytest.approx(2 * single_duration)
    assert duration(eval_episodes=8, episodes=2, steps=20, seeds=6, n_envs=8) == pytest.approx(2 * single_duration)
    assert duration(eval_episodes=16, episodes=2, steps=10, seeds=6, n_envs=16) > 1.5 * single_duration


def test_several_devices_per_run_do_not_shorten_the_estimate() -> None:
    """One interpreter launches the kernels of all GPUs, and CPU devices take turns."""

    def slowdown(this_machine: Machine) -> float:
        experiments = (experiment(devices_per_run=k, n_envs=64, seeds=1) for k in (1, 2))
        one_device_s, two_devices_s = (cost_of(request, this_machine).duration_s for request in experiments)
        return two_devices_s / one_device_s

    assert slowdown(machine(gpus=4)) == pytest.approx(
        2
    )  # twice as long, because there are no measurements with fewer environments
    assert slowdown(machine(cores=4)) > 1


def test_two_lanes_on_one_core_take_twice_as_long() -> None:
    slow_duration, fast_duration = (cost_of(experiment(), machine(cores)).duration_s for cores in (1, 2))
    assert slow_duration == pytest.approx(2 * fast_duration)


def test_the_estimated_memory_grows_linearly_with_environments() -> None:
    def memory(n_envs: int) -> int:
        return cost_of(experiment(n_envs=n_envs), machine()).memory_bytes

    assert memory(64) - memory(4) == 2 * 60 * (memory(5) - memory(4)) // 2
    assert memory(4) > 2 * (400 << 20)


def cost_of_environments(
    *controllers: str, width: int = 0, limit: int = 100, seen_steps: int = 0, **changes: object
) -> tuple[Estimate, int]:
    """Return the estimate and the number of workers; observations have `width` numbers."""
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
        seen_steps=seen_steps,
    )
    this_machine = machine(rewards=("env",), controllers=("random",), tasks=(task,))
    request = asked(*controllers, task=name, n_envs=8, steps=1000, margin=5.0, **changes)
    return cost_of(request, this_machine), len(planned(request, this_machine).lanes)


def memory_of_environments(*controllers: str, **options: object) -> float:
    cost, workers = cost_of_environments(*controllers, **options)  # type: ignore[arg-type]
    return cost.memory_bytes / workers


def test_the_estimated_duration_follows_the_episode_length_of_the_preflight() -> None:
    def seconds(seen_steps: int, *sets: str) -> tuple[float, str]:
        cost, _ = cost_of_environments("env", "random", limit=1000, seen_steps=seen_steps, sets=sets)
        return cost.duration_s - cost.start_up_s, cost.basis

    longest_duration, basis = seconds(0)
    assert "assuming episodes of 1000 steps; shorter" in basis
    short_duration, basis = seconds(50)
    assert longest_duration == pytest.approx(20 * short_duration)
    assert "assuming episodes of 50 steps, as with random actions; up to 20 times as long if policies last" in basis
    assert seconds(50, "gym.rollout=resets")[0] == pytest.approx(longest_duration)  # rollouts have a fixed length


def test_the_memory_of_learners_includes_their_copies_of_observations(tmp_path: Path) -> None:
    """A rollout is kept in seven copies (tests/unit/workers/kinds/gymnasium/test_world.py)."""
    base = 400 << 20
    width = 210 * 160 * 3
    policy = 13 * 12 * 64**2 * 4
    assert memory_of_environments("random", "alike=random", width=width) == base
    for copies, options in (
        (7, {}),
        (7, {"outcome": "info:score"}),
        (8, {"outcome": f"{tmp_path}/own.py:outcome"}),
        (10 * 7, {"limit": 0}),
        (4 * 7, {"sets": ("policy.frame_stack=4",)}),
        (10 * 7, {"sets": ("gym.rollout=resets",)}),
    ):
        memory = memory_of_environments("env", "random", width=width, **options)
        assert memory == base + policy + copies * 100 * 8 * width * 4, options


def test_the_memory_of_a_worker_includes_the_largest_learning_policy() -> None:
    def memory(*sets: str) -> int:
        return cost_of(asked("shaped", "simplified", sets=sets), machine()).memory_bytes

    small_memory = memory()
    large_memory = memory("policy.hidden=1024")
    memory_of_blind = memory("policy.hidden=1024", "policy.memory=none")
    assert large_memory - small_memory == 2 * 13 * 12 * (1024**2 - 64**2) * 4
    assert large_memory - memory_of_blind == 2 * 13 * 8 * 1024**2 * 4
    assert memory("policy.hidden=1000000") > 2**49
    memory_of_separate = memory("policy.hidden=1024", "policy.trunk=separate")
    assert memory_of_separate - large_memory == 2 * 13 * 8 * 1024**2 * 4


def test_the_step_time_is_the_one_measured_on_the_same_kind_of_device() -> None:
    def step_s(devices: tuple[str, ...], **speeds: float) -> float:
        this_machine = machine(gpus=2, multiply_adds_per_s=1e9 * speeds.get("cpu", 1.0))
        timed_devices = (
            replace(device, step_s=device.step_s * speeds.get("gpu", 1.0)) for device in this_machine.devices
        )
        this_machine = replace(this_machine, devices=tuple(timed_devices))
        return cost_of(experiment(devices=devices), this_machine).step_s

    gpu_step_s = step_s(("cuda",))
    cpu_step_s = step_s(("cpu",))
    assert gpu_step_s == pytest.approx(0.01 * (1024 + 4 / 3 * 384) / 128)
    assert (step_s(("cuda",), cpu=9.0), step_s(("cuda",), gpu=3.0)) == pytest.approx((gpu_step_s, 3 * gpu_step_s))
    assert step_s(("cpu",), gpu=3.0) == cpu_step_s > step_s(("cpu",), cpu=9.0)


def test_the_start_up_time_grows_with_workers_per_core() -> None:
    """All workers load torch at the same time."""

    def estimate_with(cores: int, start_s: float) -> Estimate:
        plan = planned(experiment(devices=("cpu:0", "cpu:1")), machine())
        return estimate(plan.experiment, plan.lanes, machine(cores=cores, start_s=start_s))

    assert estimate_with(2, 5.0).start_up_s == pytest.approx(5.0)
    assert estimate_with(1, 5.0).start_up_s == pytest.approx(10.0)
    assert estimate_with(2, 5.0).duration_s == pytest.approx(estimate_with(2, 0.0).duration_s + 5.0)


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [
        (0.0, "under 10 s"),
        (9.9, "under 10 s"),
        (10.4, "about 10 s"),
        (61.0, "about 61 s"),
        (600.0, "about 10 min"),
    ],
)
def test_short_durations_are_printed_as_under_10_s(seconds: float, duration: str) -> None:
    plan = planned(experiment(), machine())
    cost = cost_of(experiment(), machine())
    text = plan_text(plan, machine(), replace(cost, duration_s=seconds), Path("runs/x"), 200)
    assert f"estimate: {duration} including the start of the workers, " in text
