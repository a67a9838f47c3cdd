"""The task kind for Gymnasium environments."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from esper_ab.contracts.kinds_of_task import ENV_REWARD, GYM_PREFIX
from esper_ab.contracts.machine import Questions
from esper_ab.contracts.worker_order import Lane, RunSpec
from workers.environments import AboutTask, Controller, Kind, World
from workers.run.session import Session
from workers.user_code.loading import as_planned

_NAMES = AboutTask(rewards=(ENV_REWARD,), controllers=("random",))
_INSTALL = "it needs gymnasium: pip install 'esper-ab[gymnasium]'"


class Gymnasium(Kind):
    """Environments from a registered id or from a user's function."""

    def preflight(self, questions: Questions, doing: Callable[[str], None]) -> AboutTask:
        """Load all user code, and play one episode twice to see whether it repeats."""
        doing(f"playing one episode of {questions.task} twice")
        try:
            # gymnasium is optional
            from workers.kinds.gymnasium.preflight import probe
        except ModuleNotFoundError:
            return replace(_NAMES, task_problem=_INSTALL)
        return probe(questions, _NAMES)

    def runs(self, lane: Lane, experiment_dir: Path) -> Callable[[RunSpec], Session]:
        """Return a function that creates a run.

        The function raises a one-line ValueError if the code has changed since planning.
        """
        # gymnasium is optional
        from workers.kinds.gymnasium.world import GymWorld

        return lambda spec: Session(spec, GymWorld(spec, as_planned(spec.reward_code, experiment_dir)))

    def controller(self, spec: RunSpec) -> Controller[Any]:
        """Return the controller that `spec` names."""
        # gymnasium is optional
        from workers.kinds.gymnasium.world import RandomActions

        if spec.settings.controller.name not in _NAMES.controllers:
            raise ValueError(f"no controller {spec.settings.controller.name!r} for Gymnasium; the only one is random")
        return RandomActions()

    def world(self, path: Path, spec: RunSpec, importable: Collection[str], device: str) -> World:
        """Return the world of a saved policy."""
        # gymnasium is optional
        from workers.kinds.gymnasium.world import GymWorld

        if not spec.task.startswith(GYM_PREFIX):
            return super().world(path, spec, importable, device)
        if ":" in spec.outcome.removeprefix("info:"):
            subject = f"{path}: its outcome {spec.outcome!r}"
            raise ValueError(f"{subject} is the user's code, which a policy file must not run")
        module = spec.task.removeprefix(GYM_PREFIX).rpartition(":")[0]
        if module and module not in importable:
            raise ValueError(
                f"{path}: its task {spec.task!r} imports {module!r}, and a policy file may import only modules that "
                f"you allow; if you trust the installed module of that name, add --import {module}"
            )
        return GymWorld(spec)


KIND = Gymnasium()
