"""What a plan says of its devices is true for every kind of task, placement and machine."""

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


def growth(there: Machine, groups: str = "ab", **changes: object) -> Plan:
    return requests.planned(requests.experiment(tuple(groups), **{"margin": 2.0} | changes), there)


def said(plan: Plan, there: Machine) -> str:
    """The devices of a plan, as on its first screen."""
    return "; ".join(filter(None, (f"{runs_at_once(plan)} {where(plan, there)}", unused_gpus(plan, there))))


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
def test_devices_and_environments_per_device_of_growing_networks(
    gpus: int, changes: dict[str, object], devices: str, environments: str
) -> None:
    there = requests.machine(gpus=gpus)
    plan = growth(there, **changes)  # type: ignore[arg-type]
    assert said(plan, there) == devices
    assert environments_per_device(plan) == environments


def test_gpus_of_no_use_to_gymnasium_are_counted_without_a_flag_that_would_be_refused() -> None:
    there = requests.machine(gpus=2, tasks=(CARTPOLE,), rewards=("env",))
    groups = tuple(
        Group(name=name, settings=GroupSettings(reward=RewardSettings(mode="env"))) for name in ("env", "same")
    )
    plan = requests.planned(requests.experiment(groups=groups, task=CARTPOLE.name, n_envs=8, margin=2.0), there)
    assert said(plan, there) == "2 on 2 CPU cores; 2 GPUs unused (Gymnasium environments run on the CPU)"
    assert environments_per_device(plan) == "cpu:0: 8 environments, cpu:1: 8"


@pytest.mark.parametrize(
    ("gpus", "devices", "shown"),
    [
        (0, (), "2 on 2 CPU cores"),
        (2, (), "2 on cuda:0 and cuda:1"),
        (1, (), "2 sharing cuda:0"),
        (2, ("cpu",), "2 on 2 CPU cores; 2 GPUs unused (--devices cuda)"),
    ],
)
def test_a_trainer_has_devices_but_no_environments_that_are_known(
    gpus: int, devices: tuple[str, ...], shown: str
) -> None:
    rehearsed = requests.rehearsed()
    there = requests.machine(gpus=gpus, tasks=rehearsed.tasks, trainer=rehearsed.trainer)
    groups = ("slow:trainer.lr=0.1", "fast:trainer.lr=0.2")
    asked = requests.asked(
        group=groups, trainer="mine.py", outcome="error", outcome_better="lower", margin=0.5, devices=devices
    )
    plan = requests.planned(asked, there)
    assert said(plan, there) == shown
    assert environments_per_device(plan) == ""
