"""The cost of a run in Gymnasium environments, from the measured time of a step. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.kinds_of_task import is_own_outcome
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.worker_order import Lane
from esper_ab.plan.kind import EstimateKind
from esper_ab.plan.run_cost import (
    DECISION_S,
    WORKER_BYTES,
    RunCost,
    observation_bytes,
    played_episodes,
    policy_bytes,
)
from esper_ab.settings.experiment import ResolvedExperiment


class GymnasiumEstimate(EstimateKind):
    """Estimates of episodes that end by themselves."""

    def run_cost(self, experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine) -> RunCost:
        """Estimate a run, assuming episodes as long as in the preflight.

        The estimate of memory assumes episodes of the longest allowed length.
        """
        task = machine.task(experiment.task)
        step_s = experiment.n_envs * task.step_s + DECISION_S
        limit = min(experiment.steps, task.episode_steps or experiment.steps)
        rollout = experiment.steps  # steps of the longest rollout
        assumed_steps = experiment.steps
        if all(group.settings.gym.rollout == "episodes" for group in experiment.groups):  # they end with their episodes
            rollout = limit
            assumed_steps = min(limit, task.seen_steps or limit)
        assumption = f"assuming episodes of {assumed_steps} steps; shorter ones take less"
        if assumed_steps < limit:
            longest_words = f"up to {limit / assumed_steps:.0f} times as long if policies last {limit}"
            assumption = f"assuming episodes of {assumed_steps} steps, as with random actions; {longest_words}"
        kept_bytes = observation_bytes(experiment, task, rollout, other_copies=int(is_own_outcome(experiment.outcome)))
        return RunCost(
            step_s=step_s,
            run_s=step_s * assumed_steps * played_episodes(experiment),
            memory_bytes=WORKER_BYTES + policy_bytes(experiment) + kept_bytes,
            basis=f"rough: {1 / task.step_s:.0f} steps of an environment per second measured, {assumption}",
            longest_times=limit / assumed_steps,
        )


KIND = GymnasiumEstimate()
