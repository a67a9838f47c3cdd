"""Ask this machine, and the nodes of the launcher, what exists there; each question once per campaign."""

from __future__ import annotations

from pathlib import Path

import msgspec

from esper_ab.contracts.machine import Machine, Questions
from esper_ab.contracts.wording import counted
from esper_ab.control.nodes import examine_nodes
from esper_ab.control.preflight import examine_here
from esper_ab.launchers import Launcher
from esper_ab.live.console import waiting


class Machines:
    """The answers of the preflight to the questions of all parts."""

    def __init__(self, launcher: Launcher, *, only_plan: bool) -> None:
        """With `only_plan`, the modules that carry out a plan are not imported while the preflight imports torch."""
        self._launcher = launcher
        self._meanwhile = _import_nothing if only_plan else _import_control
        self._answers: dict[bytes, Machine] = {}

    def examine(self, questions: Questions, shared_folder: Path) -> Machine:
        """Return the answers of this machine, checked against those of all nodes; raises as `examine_nodes` does.

        Every node must see `shared_folder`.
        """
        key = msgspec.json.encode(questions)
        machine = self._answers.get(key)
        if machine is not None:
            return machine
        with waiting("looking at this machine"):
            machine = examine_here(questions, self._launcher, self._meanwhile)
        if self._launcher.nodes:
            with waiting(f"looking at {counted(len(self._launcher.nodes), 'node')}"):
                machine = examine_nodes(machine, questions, self._launcher, shared_folder)
        self._answers[key] = machine
        return machine


def _import_nothing() -> None:
    """Import no modules while the preflight imports torch."""


def _import_control() -> None:
    """Import the modules that carry out an experiment, while the preflight imports torch in its own process."""
    from esper_ab.control import experiment_run  # noqa: F401
    from esper_ab.launchers import local  # noqa: F401
