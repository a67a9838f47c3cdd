"""What the preflight finds out about tasks of growth."""

from __future__ import annotations

import msgspec
import pytest
import torch

from esper_ab.contracts.catalog import names
from esper_ab.contracts.children import ControllerQuestion, Questions
from esper_ab.contracts.settings import ControllerSettings
from workers.growth.preflight import probe, step_s, task_facts
from workers.tasks.cifar10 import TASK


def problems_of(asked: Questions) -> dict[str, str]:
    return probe(asked, lambda doing: None).controller_problems


@pytest.mark.parametrize("task", names("workers.tasks"))
def test_a_step_of_every_task_of_growth_can_be_timed(task: str) -> None:
    asked = Questions(task=task, data_dir="", user_rewards=(), hosts=3, batch_size=2)
    assert step_s(asked, torch.device("cpu")) > 0


def questions(name: str, *entries: str, slots: tuple[str, ...] = ()) -> Questions:
    settings = ControllerSettings(name=name, schedule=entries)
    asked = ControllerQuestion(group="plan", settings=settings, blueprints=("norm",))
    return Questions(task="synthetic", data_dir="", slots=slots, user_rewards=(), controllers=(asked,))


def test_a_schedule_is_read_before_anything_starts() -> None:
    assert problems_of(questions("schedule", "1:germinate:early:blueprint=norm")) == {}
    assert "no blueprint 'attention'" in problems_of(questions(
        "schedule", "1:germinate:early:blueprint=attention"
    ))["plan"]
    germination = "1:germinate:early:blueprint=norm"
    assert "no slot 'early'; choose from late" in problems_of(questions(
        "schedule", germination, slots=("late",)
    ))["plan"]


def test_what_does_not_exist_is_left_to_whoever_asked() -> None:
    assert problems_of(questions("nobody")) == {}
    assert problems_of(msgspec.structs.replace(questions("schedule", "x"), task="nothing")) == {}


def test_cost_of_a_host_by_hand() -> None:
    by_hand = 3 * 8 * 9 * 32**2 + 8 * 16 * 9 * 16**2 + 16 * 32 * 9 * 8**2 + 32 * 10
    assert task_facts(TASK).host_multiply_adds == by_hand
    assert task_facts(TASK).classes == TASK.host.classes
    assert task_facts(TASK).host_values == 8 * 32**2 + 16 * 16**2 + 32 * 8**2
