"""The task kind for the user's own training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from esper_ab.contracts.kinds_of_task import TRAINER
from esper_ab.contracts.machine import Questions, TaskFacts
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.trainer import is_command, is_function
from esper_ab.contracts.worker_order import Lane, RunSpec
from workers.devices import pinned
from workers.environments import AboutTask, Kind
from workers.kinds.trainer import words
from workers.kinds.trainer.command_session import CommandSession
from workers.kinds.trainer.function_session import FunctionSession
from workers.kinds.trainer.session import TrainerSession


def open_session(spec: RunSpec, experiment_dir: Path, uuids: Sequence[str]) -> TrainerSession:
    """Open the run of `spec.trainer` on the devices `uuids`; ValueError if its code has changed since planning."""
    assert spec.trainer is not None, "the run has a trainer"
    if is_command(spec.trainer.reference):
        return CommandSession(spec, experiment_dir, uuids)
    if is_function(spec.trainer.reference):
        return FunctionSession(spec, experiment_dir, uuids)
    from workers.kinds.trainer.python_session import PythonSession  # imports torch

    device = words.device_word(pinned.variables(uuids, spec.arithmetic))
    return PythonSession(spec, experiment_dir, device)


class Trainer(Kind):
    """A Python trainer or a command."""

    def preflight(self, questions: Questions, doing: Callable[[str], None]) -> AboutTask:
        """Rehearse the trainer if the questions name one; the measures are those that the rehearsal found."""
        question = questions.trainer
        outcome = questions.trainer_outcome
        names = AboutTask(controllers=(TRAINER,))
        if question is None or outcome is None:
            return names
        from workers.kinds.trainer.rehearsal import rehearse  # imports torch

        facts = rehearse(question, outcome, doing)
        measures = tuple(Measure(name=name, label=metric[:60]) for metric, name in facts.metrics.items())
        task = TaskFacts(
            name=questions.task,
            title=question.reference,
            kind=TRAINER,
            measures=TaskMeasures(outcome=outcome, measures=measures),
        )
        return replace(names, tasks=(task,), trainer=facts)

    def runs(self, lane: Lane, experiment_dir: Path) -> Callable[[RunSpec], TrainerSession]:
        """Return a function that creates a run.

        The function raises a one-line ValueError if the files have changed since planning.
        """
        return lambda spec: open_session(spec, experiment_dir, lane.uuids)


KIND = Trainer()
