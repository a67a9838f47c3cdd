"""Tasks of Gymnasium."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from esper_ab.contracts.children import Questions
from esper_ab.contracts.messages import Lane, RunSpec
from esper_ab.contracts.settings import CONTROLLERS, GYM_PREFIX, GYMNASIUM, REWARDS
from workers.environments import AboutTask, Controller, Kind, World
from workers.run.session import Session
from workers.user_rewards.user_code import as_planned

_NAMES = AboutTask(rewards=REWARDS[GYMNASIUM], controllers=CONTROLLERS[GYMNASIUM])
_INSTALL = "it needs gymnasium: pip install 'esper-ab[gymnasium]'"


class Gymnasium(Kind):
    """Environments of a registered id, or of a function of the user's own."""

    def preflight(self, questions: Questions, doing: Callable[[str], None]) -> AboutTask:
        """Load everything that is the user's, and play one episode again and again."""
        doing(f"playing one episode of {questions.task}, and the same again")
        try:
            # gymnasium is optional
            from workers.gymnasium_task.preflight import probe
        except ModuleNotFoundError:
            return replace(_NAMES, task_problem=_INSTALL)
        return probe(questions, _NAMES)

    def runs(self, lane: Lane, experiment_dir: Path) -> Callable[[RunSpec], Session]:
        """Return what makes a run; ValueError, in one line, when its code is no longer what was planned."""
        # gymnasium is optional
        from workers.gymnasium_task.world import GymWorld

        return lambda spec: Session(spec, GymWorld(spec, as_planned(spec.reward_code, experiment_dir)))

    def controller(self, spec: RunSpec) -> Controller[Any]:
        """Make the controller that `spec` names."""
        # gymnasium is optional
        from workers.gymnasium_task.world import RandomActions

        if spec.settings.controller.name not in _NAMES.controllers:
            raise ValueError(f"no controller {spec.settings.controller.name!r} in a Gymnasium task; there is random")
        return RandomActions()

    def world(self, path: Path, spec: RunSpec, importable: Collection[str], device: str) -> World:
        """Return the world of a saved policy."""
        # gymnasium is optional
        from workers.gymnasium_task.world import GymWorld

        if not spec.task.startswith(GYM_PREFIX):
            return super().world(path, spec, importable, device)
        if ":" in spec.outcome.removeprefix("info:"):
            what = f"{path}: its outcome {spec.outcome!r}"
            raise ValueError(f"{what} is code, which a policy file must not cause to run")
        module = spec.task.removeprefix(GYM_PREFIX).rpartition(":")[0]
        if module and module not in importable:
            raise ValueError(
                f"{path}: its task {spec.task!r} imports {module!r}, which a policy file must not cause; if you trust "
                f"the installed module of that name, allow it: --import {module}"
            )
        return GymWorld(spec)


KIND = Gymnasium()
