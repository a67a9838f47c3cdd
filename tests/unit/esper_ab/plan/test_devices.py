"""Descriptions of a plan's devices, for every kind of task, placement and machine."""

import pytest
from support.plans import requests

from esper_ab.contracts.machine import Machine, TaskFacts
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.settings import GroupSettings, RewardSettings
from esper_ab.plan.devices import environments_per_device, runs_at_once, unused_gpus, where
from esper_ab.plan.plan import Plan
from esper_ab.settings.experiment import Group

RETURN = TaskMeasures(outcome=Measure(name="return", label="return", unit="", better="higher"))
CARTPOLE = TaskFacts(name="gym:CartPole-v1", title="", kind="gymnasium", measures=RETURN, step_s=1e-5, episode_steps=9)


def growth_plan(this_machine: Machine, groups: str = "ab", **changes: object) -> Plan:
    return requests.planned(requests.experiment(tuple(groups), **{"margin": 2.0} | changes), this_machine)


def describe_devices(plan: Plan, this_machine: Machine) -> str:
    """Return the devices of a plan as on its first screen."""
    return "; ".join(
        filter(None, (f"{runs_at_once(plan)} {where(plan, this_machine)}", unused_gpus(plan, this_machine)))
    )


@pytest.mark.parametrize(
    ("gpus", "changes", "devices", "environments"),
    [
        (0, {}, "2 on 2 CPU cores", "cpu:0: 4 environments, cpu:1: 4"),
        (0, {"groups": "abc", "control": "a"}, "3 sharing 2 CPU cores", "cpu:0: 4 environments, cpu:1: 4, cpu:2: 4"),
        (0, {"seeds": 1, "placement": "sequence"}, "1 on 1 CPU core", "cpu:0: 4 environments"),
        (0, {"seeds": 1, "placement": "alternate"}, "1 on 1 CPU core", "cpu:0: 4 environments"),
        (0, {"devices": ("cpu:0",), "placement": "share"}, "2 sharing 1 CPU core", "cpu:0: 8 environments"),
        (1, {}, "2 sharing cuda:0", "cuda:0: 8 environments"),
        (1, {"placement": "sequence"}, "1 on cuda:0", "cuda:0: 4 environments"),
        (
            1,
            {"devices": ("cpu",)},
            "2 on 2 CPU cores; 1 GPU unused (--devices cuda)",
            "cpu:0: 4 environments, cpu:1: 4",
        ),
        (2, {}, "2 on cuda:0 and cuda:1", "cuda:0: 4 environments, cuda:1: 4"),
        (2, {"devices": ("cuda:1",)}, "2 sharing cuda:1; 1 GPU unused (--devices cuda)", "cuda:1: 8 environments"),
        (
            2,
            {"devices": ("cuda:1", "cpu:0")},
            "2 on cuda:1 and 1 CPU core; 1 GPU unused (--devices cuda)",
            "cuda:1: 4 environments, cpu:0: 4",
        ),
        (2, {"devices_per_run": 2}, "2 sharing cuda:0 and cuda:1", "cuda:0: 4 environments, cuda:1: 4"),
        (
            2,
            {"n_envs": 3, "devices_per_run": 2, "placement": "sequence"},
            "1 on cuda:0 and cuda:1",
            "cuda:0: 2 environments, cuda:1: 1",
        ),
        (
            8,
            {"seeds": 12},
            "8 on 8 GPUs",
            ", ".join(["cuda:0: 4 environments", *(f"cuda:{i}: 4" for i in range(1, 8))]),
        ),
        (8, {"max_parallel": 2}, "2 on cuda:0 and cuda:1; 6 GPUs unused", "cuda:0: 4 environments, cuda:1: 4"),
    ],
)
def test_a_growth_plan_lists_devices_and_environments_per_device(
    gpus: int, changes: dict[str, object], devices: str, environments: str
) -> None:
    this_machine = requests.machine(gpus=gpus)
    plan = growth_plan(this_machine, **changes)  # type: ignore[arg-type]
    assert describe_devices(plan, this_machine) == devices
    assert environments_per_device(plan) == environments


def test_gpus_unused_by_gymnasium_are_counted_without_suggesting_a_flag() -> None:
    this_machine = requests.machine(gpus=2, tasks=(CARTPOLE,), rewards=("env",))
    groups = tuple(
        Group(name=name, settings=GroupSettings(reward=RewardSettings(mode="env"))) for name in ("env", "same")
    )
    plan = requests.planned(requests.experiment(groups=groups, task=CARTPOLE.name, n_envs=8, margin=2.0), this_machine)
    assert (
        describe_devices(plan, this_machine)
        == "2 on 2 CPU cores; 2 GPUs unused (Gymnasium environments run on the CPU)"
    )
    assert environments_per_device(plan) == "cpu:0: 8 environments, cpu:1: 8"


@pytest.mark.parametrize(
    ("gpus", "devices", "description"),
    [
        (0, (), "2 on 2 CPU cores"),
        (2, (), "2 on cuda:0 and cuda:1"),
        (1, (), "2 sharing cuda:0"),
        (2, ("cpu",), "2 on 2 CPU cores; 2 GPUs unused (--devices cuda)"),
    ],
)
def test_a_plan_of_a_trainer_lists_devices_but_no_environments(
    gpus: int, devices: tuple[str, ...], description: str
) -> None:
    rehearsed_machine = requests.rehearsed()
    this_machine = requests.machine(gpus=gpus, tasks=rehearsed_machine.tasks, trainer=rehearsed_machine.trainer)
    groups = ("slow:trainer.lr=0.1", "fast:trainer.lr=0.2")
    request = requests.asked(
        group=groups, trainer="mine.py", outcome="error", outcome_better="lower", margin=0.5, devices=devices
    )
    plan = requests.planned(request, this_machine)
    assert describe_devices(plan, this_machine) == description
    assert environments_per_device(plan) == ""
