"""The preflight child's own judgements; what it finds on a real machine is tested through the preflight."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest
import torch

from esper_ab.contracts.catalog import names
from esper_ab.contracts.machine import ControllerQuestion, Questions
from esper_ab.contracts.settings import ControllerSettings
from workers.commands.describe import controller_problems, find_gpus, gpu_problem, step_s, task_facts
from workers.tasks.cifar10 import TASK


@pytest.mark.parametrize(
    ("gpu_there", "cuda_build", "usable", "pool", "words"),
    [
        (False, None, 0, None, ""),
        (True, "13.0", 1, None, ""),
        (True, None, 0, None, "build without CUDA"),
        (True, "13.0", 0, None, "finds none"),
        (True, "13.0", 0, "GPU-abc", "finds none in CUDA_VISIBLE_DEVICES=GPU-abc"),
        (True, "13.0", 0, "", ""),  # the user took the GPUs out of the pool
        (True, None, 0, "-1", ""),
        (True, "13.0", 0, "MIG-a,MIG-b", "names an instance of MIG beside others, and a process sees one instance"),
        (True, None, 0, "MIG-a,MIG-b", "build without CUDA"),
        (True, "13.0", 0, "MIG-a", "finds none in CUDA_VISIBLE_DEVICES=MIG-a"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_a_problem(
    gpu_there: bool, cuda_build: str | None, usable: int, pool: str | None, words: str
) -> None:
    problem = gpu_problem(gpu_there, cuda_build, usable, pool)
    assert words in problem
    assert bool(problem) == bool(words)


def test_a_gpu_that_fails_is_named_and_left_out_and_one_that_nobody_asks_for_is_not_touched() -> None:
    """There is no GPU of this number anywhere, so that to try it is to fail."""
    facts = SimpleNamespace(name="H200", total_memory=1 << 30, major=9, minor=0)
    seen = [(f"GPU-{index}", facts) for index in range(300)]
    gpus, told = find_gpus(Questions(task="digits", data_dir="", user_rewards=(), gpus=("cuda:299",)), seen)
    assert [gpu.uuid for gpu in gpus] == [name for name, _ in seen[:-1]]
    assert told.startswith("GPUs requested: 1, usable: 0; not cuda:299 (")
    assert len(told.splitlines()) == 1
    gpus, told = find_gpus(Questions(task="digits", data_dir="", user_rewards=()), seen)
    assert (len(gpus), told) == (300, "")


@pytest.mark.parametrize("task", names("workers.tasks"))
def test_a_step_of_every_task_of_growth_can_be_timed(task: str) -> None:
    asked = Questions(task=task, data_dir="", user_rewards=(), hosts=3, batch_size=2)
    assert step_s(asked, torch.device("cpu")) > 0


def questions(name: str, *entries: str, slots: tuple[str, ...] = ()) -> Questions:
    settings = ControllerSettings(name=name, schedule=entries)
    asked = ControllerQuestion(group="plan", settings=settings, blueprints=("norm",))
    return Questions(task="synthetic", data_dir="", slots=slots, user_rewards=(), controllers=(asked,))


def test_a_schedule_is_read_before_anything_starts() -> None:
    assert controller_problems(questions("schedule", "1:germinate:early:blueprint=norm")) == {}
    assert "no blueprint 'attention'" in controller_problems(questions(
        "schedule", "1:germinate:early:blueprint=attention"
    ))["plan"]
    germination = "1:germinate:early:blueprint=norm"
    assert "no slot 'early'; it is one of late" in controller_problems(questions(
        "schedule", germination, slots=("late",)
    ))["plan"]


def test_what_does_not_exist_is_left_to_whoever_asked() -> None:
    assert controller_problems(questions("nobody")) == {}
    assert controller_problems(msgspec.structs.replace(questions("schedule", "x"), task="nothing")) == {}


def test_cost_of_a_host_by_hand() -> None:
    by_hand = 3 * 8 * 9 * 32**2 + 8 * 16 * 9 * 16**2 + 16 * 32 * 9 * 8**2 + 32 * 10
    assert task_facts(TASK).host_multiply_adds == by_hand
    assert task_facts(TASK).classes == TASK.host.classes
    assert task_facts(TASK).host_values == 8 * 32**2 + 16 * 16**2 + 32 * 8**2
