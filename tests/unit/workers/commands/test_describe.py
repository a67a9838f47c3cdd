"""The preflight child's own judgements; what it finds on a real machine is tested through the preflight."""

from __future__ import annotations

import msgspec
import pytest

from esper_ab.contracts.machine import ControllerQuestion, Questions
from esper_ab.contracts.settings import ControllerSettings
from workers.commands.describe import controller_problems, gpu_problem, task_facts
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
