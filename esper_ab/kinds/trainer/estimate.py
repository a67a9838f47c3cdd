"""The cost of a run of the user's trainer, from the times in its rehearsal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.trainer import is_guarded
from esper_ab.contracts.worker_order import Lane
from esper_ab.plan.kind import EstimateKind
from esper_ab.plan.run_cost import GUARD_BYTES, WORKER_BYTES, RunCost
from esper_ab.settings.experiment import ResolvedExperiment


class TrainerEstimate(EstimateKind):
    """Estimates of points and an evaluation; a step of the estimate is a point of the trainer."""

    def run_cost(self, experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine) -> RunCost:
        """Estimate a run from the rehearsal."""
        facts = machine.trainer
        assert facts is not None, "it was rehearsed"
        shortened_words = f", which was shortened by {facts.shortened}" if facts.shortened else ""
        memory_bytes = max(WORKER_BYTES, facts.memory_bytes)
        if is_guarded(experiment.trainer):
            memory_bytes = GUARD_BYTES + facts.memory_bytes
        return RunCost(
            step_s=facts.point_s,
            run_s=facts.point_s * experiment.episodes + facts.evaluate_s,
            memory_bytes=memory_bytes,
            basis=f"rough: runs assumed to take as long, and as much memory, as in the rehearsal{shortened_words}",
        )


KIND = TrainerEstimate()
