"""The cost of a run and the sentences of a plan, for one kind of task. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from esper_ab.contracts.kinds_of_task import Concern
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.wording import counted
from esper_ab.contracts.worker_order import Lane
from esper_ab.plan.run_cost import (
    DECISION_S,
    WORKER_BYTES,
    RunCost,
    observation_bytes,
    played_episodes,
    policy_bytes,
)
from esper_ab.settings.experiment import ResolvedExperiment


class EstimateKind(Concern):
    """Base of the estimates of a kind of task."""

    file = "estimate"

    def run_cost(self, experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine) -> RunCost:
        """Estimate a run that trains alone: by default from the step time that the preflight measured, if it did."""
        task = machine.task(experiment.task)
        step_s = experiment.n_envs * task.step_s + DECISION_S
        basis = "rough: the time of an environment's step was not measured"
        if task.step_s:
            basis = f"rough: {1 / task.step_s:.0f} steps of an environment per second measured"
        return RunCost(
            step_s=step_s,
            run_s=step_s * experiment.steps * played_episodes(experiment),
            memory_bytes=WORKER_BYTES
            + policy_bytes(experiment)
            + observation_bytes(experiment, task, experiment.steps),
            basis=basis,
        )


class NotesKind(Concern):
    """Base of the sentences of a plan for a kind of task; the defaults are for policies that esper_ab trains.

    Each method that returns several sentences returns none by default. They are listed in the order of the plan.
    """

    file = "notes"
    episodes = "training episodes"  # what the training of a run consists of
    # What an outcome over the end of training estimates.
    in_training = "the policies of that part of training, which still learn, and not the final policy"

    def measured(self, label: str) -> str:
        """Say what the outcome called `label` belongs to."""
        return f"{label} of the trained policy"

    def size(self, experiment: ResolvedExperiment) -> str:
        """Describe the training and the evaluation of one run."""
        return self.size_with(experiment, "")

    def size_with(self, experiment: ResolvedExperiment, details: str) -> str:
        """Describe the training, with `details` after its numbers, and the evaluation of one run."""
        training = (
            f"{counted(experiment.episodes, 'episode')} x {counted(experiment.steps, 'step')} x "
            f"{counted(experiment.n_envs, 'environment')}{details}"
        )
        return f"{training}; evaluation: {counted(experiment.eval_episodes, 'episode')}"

    def first_lines(self, experiment: ResolvedExperiment, machine: Machine) -> Iterable[str]:
        """Return the lines that come before the plan: what was found out about the user's own code."""
        return ()

    def first_limits(self, experiment: ResolvedExperiment, machine: Machine) -> Iterable[str]:
        """Return the limits of the plan's verdicts that the user sees before all others."""
        return ()

    def on_differences(self, experiment: ResolvedExperiment) -> Iterable[str]:
        """Return limits that follow from how the groups' settings differ."""
        return ()

    def on_environments(self, experiment: ResolvedExperiment, machine: Machine) -> Iterable[str]:
        """Return limits that follow from the task's environments."""
        return ()

    def first_notes(self, experiment: ResolvedExperiment, machine: Machine) -> Iterable[str]:
        """Return the notes that come first after the limits."""
        return ()

    def on_learning(self, experiment: ResolvedExperiment) -> Iterable[str]:
        """Return notes on what the groups learn from, and how much they learn."""
        return ()
