"""The cost of a run of the user's trainer, from the times in its rehearsal. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.worker_order import Lane
from esper_ab.plan.kind import EstimateKind
from esper_ab.plan.run_cost import WORKER_BYTES, RunCost
from esper_ab.settings.experiment import ResolvedExperiment


class TrainerEstimate(EstimateKind):
    """Estimates of points and an evaluation; a step of the estimate is a point of the trainer."""

    def run_cost(self, experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine) -> RunCost:
        """Estimate a run from the rehearsal."""
        facts = machine.trainer
        assert facts is not None, "it was rehearsed"
        short = f", which was shortened by {facts.shortened}" if facts.shortened else ""
        return RunCost(
            step_s=facts.point_s,
            run_s=facts.point_s * experiment.episodes + facts.evaluate_s,
            memory_bytes=WORKER_BYTES,
            basis=f"rough: runs assumed to take as long as in the rehearsal{short}; "
            "the trainer's own memory is not included",
        )


KIND = TrainerEstimate()
