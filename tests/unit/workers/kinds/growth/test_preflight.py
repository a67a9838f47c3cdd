"""Facts about growth tasks that the preflight measures."""

import pytest
import torch

from esper_ab.contracts.catalog import names
from esper_ab.contracts.machine import ControllerQuestion, Questions
from esper_ab.contracts.settings import ControllerSettings
from workers.kinds.growth.preflight import probe, step_s, task_facts
from workers.kinds.growth.tasks.cifar10 import TASK


@pytest.mark.parametrize("task", names("workers.kinds.growth.tasks"))
def test_a_step_of_every_growth_task_can_be_timed(task: str) -> None:
    questions = Questions(task=task, data_dir="", user_rewards=(), hosts=3, batch_size=2)
    assert step_s(questions, torch.device("cpu")) > 0


@pytest.mark.parametrize(
    ("controller", "task", "blueprint", "slots", "complaint"),
    [
        ("schedule", "synthetic", "norm", (), ""),
        ("schedule", "synthetic", "attention", (), "no blueprint 'attention'"),
        ("schedule", "synthetic", "norm", ("late",), "no slot 'early'; choose from late"),
        ("nobody", "synthetic", "x", (), ""),
        ("schedule", "nothing", "x", (), ""),  # whoever asks will see
    ],
)
def test_the_preflight_reports_an_invalid_schedule(
    controller: str, task: str, blueprint: str, slots: tuple[str, ...], complaint: str
) -> None:
    settings = ControllerSettings(name=controller, schedule=(f"1:germinate:early:blueprint={blueprint}",))
    question = ControllerQuestion(group="plan", settings=settings, blueprints=("norm",))
    questions = Questions(task=task, data_dir="", slots=slots, user_rewards=(), controllers=(question,))
    problems = probe(questions, lambda action: None).controller_problems
    assert problems.keys() == ({"plan"} if complaint else set())
    assert complaint in problems.get("plan", "")


def test_the_cost_of_a_host_equals_a_value_computed_by_hand() -> None:
    by_hand = 3 * 8 * 9 * 32**2 + 8 * 16 * 9 * 16**2 + 16 * 32 * 9 * 8**2 + 32 * 10
    assert task_facts(TASK).host_multiply_adds == by_hand
    assert task_facts(TASK).classes == TASK.host.classes
    assert task_facts(TASK).host_values == 8 * 32**2 + 16 * 16**2 + 32 * 8**2
