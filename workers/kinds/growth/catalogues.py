"""The catalogues of growth, packages with one file per entry: reward modes, tasks, blueprints and controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from esper_ab.contracts import catalog
from workers.environments import Controller
from workers.kinds.growth.datasets.task import Task

if TYPE_CHECKING:  # it imports torch, which a download needs not
    from workers.kinds.growth.layers.blueprint import Blueprint

REWARDS = "workers.kinds.growth.rewards"
TASKS = "workers.kinds.growth.tasks"
BLUEPRINTS = "workers.kinds.growth.blueprints"
CONTROLLERS = "workers.kinds.growth.controllers"


def task_named(name: str) -> Task:
    """Return a task of the catalogue; KeyError if there is none of that name."""
    task: Task = catalog.entry(TASKS, name, "TASK")
    return task


def blueprint_named(name: str) -> Blueprint:
    """Return a blueprint of the catalogue; KeyError if there is none of that name."""
    blueprint: Blueprint = catalog.entry(BLUEPRINTS, name, "BLUEPRINT")
    return blueprint


def controller_maker(name: str) -> Callable[..., Controller[Any]]:
    """Return the function that makes a controller from settings, slots and blueprints; KeyError if there is none."""
    make: Callable[..., Controller[Any]] = catalog.entry(CONTROLLERS, name, "make")
    return make
