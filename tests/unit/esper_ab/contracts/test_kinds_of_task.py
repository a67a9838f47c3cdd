"""The kind of a task follows from its name; each kind has rules, with defaults for unknown kinds."""

import pytest

from esper_ab.contracts.kinds_of_task import GROWTH, GYMNASIUM, TRAINER, kind_of_task, kinds, may_be_function, of_kind
from esper_ab.plan.kind import EstimateKind, NotesKind
from esper_ab.settings.kind import SettingsKind


@pytest.mark.parametrize(
    ("kind", "tasks"),
    [
        (GROWTH, ("digits", "cifar10", "growth")),
        # also functions of modules that have the name of a kind
        (GYMNASIUM, ("gym:CartPole-v1", "/a/env.py:make", "a.b:make", "growth:make", "gymnasium:make", "kinds:make")),
        (TRAINER, ("trainer:mine",)),
    ],
)
def test_the_name_of_a_task_determines_its_kind(kind: str, tasks: tuple[str, ...]) -> None:
    assert [kind_of_task(task) for task in tasks] == [kind] * len(tasks)


@pytest.mark.parametrize(
    ("task", "is_function"),
    [
        ("/a/env.py:make", True),
        ("a.b:make", True),
        ("trainer:make", True),
        ("gym:CartPole-v1", False),
        ("digits", False),
    ],
)
def test_a_task_is_a_function_unless_its_name_says_its_kind(task: str, is_function: bool) -> None:
    assert may_be_function(task) == is_function


@pytest.mark.parametrize("name", kinds())
def test_every_kind_has_rules_for_settings(name: str) -> None:
    rules = of_kind(name, SettingsKind)
    assert rules.name == name
    assert rules.words
    assert rules is of_kind(name, SettingsKind)


@pytest.mark.parametrize("name", ["", "another", "../settings", "growth.settings", "__pycache__"])
def test_an_unknown_kind_has_the_default_rules(name: str) -> None:
    """A journal may come from an installation with more kinds."""
    assert type(of_kind(name, NotesKind)) is NotesKind
    assert type(of_kind(name, EstimateKind)) is EstimateKind
