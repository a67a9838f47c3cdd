"""Pool finished experiments over the same tasks, on different rng seeds, as one larger experiment over them. Pure.

The runs of all experiments are judged by the plan that one launch over these tasks would have had for all of their
seeds: one look, and all comparisons, on every task and on their mean, share alpha and hand it on. This plan gets the
share of alpha that `stats/pooled_bound.py` leaves for a pooled answer. An experiment over several tasks has one look,
when all tasks are done, so no early stop has to be paid for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from esper_ab.analysis.analyse import facts_of
from esper_ab.analysis.observe import progress_of, rows_of
from esper_ab.analysis.pooling import (
    JoinedExperiment,
    PooledComparison,
    bootstrap_seed,
    disagreement,
    joined_facts,
    means_of,
)
from esper_ab.stats.floats import Floats
from esper_ab.stats.pooled_bound import alpha_of_pooling
from esper_ab.verdict.analysis_plan import AnalysisPlan, Rule, make_plan
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.judge import judge_looks
from esper_ab.verdict.looks import take_looks
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Facts, Observations
from esper_ab.verdict.runs import Runs


@dataclass(frozen=True, kw_only=True)
class JoinedTasks:
    """One of several experiments over the same tasks."""

    name: str  # of its directory
    plan: AnalysisPlan  # over all tasks
    parts: Mapping[str, JoinedExperiment]  # by task

    @property
    def rng_seed(self) -> int:
        """The rng seed, which is that of every task."""
        return next(iter(self.parts.values())).history.plan.experiment.rng_seed


def pool_over_tasks(experiments: Sequence[JoinedTasks]) -> tuple[PooledComparison, ...]:
    """Pool the experiments, in the order of their rng seeds, in all comparisons that the first one plans."""
    in_order = sorted(experiments, key=lambda item: item.rng_seed)
    replicates = [_replicate(number, name) for number, item in enumerate(in_order) for name in item.plan.replicates]
    plan = _pooled_plan(experiments[0], len(experiments), replicates)
    observations = Observations(
        source="",
        pair_column="replicate",
        rows=Runs.of(_rows(in_order)),
        facts={task: _facts([item.parts[task] for item in in_order]) for task in plan.tasks},
    )
    rng_seed = bootstrap_seed(part for item in in_order for part in item.parts.values())
    answer = judge_looks(plan, observations, take_looks(plan, observations), rng_seed)
    ends = np.cumsum([len(item.plan.replicates) for item in in_order])
    return tuple(_pooled(comparison, ends.tolist()) for comparison in answer.comparisons)


def _replicate(number: int, replicate: str) -> str:
    """Return the name of a replicate among those of all experiments."""
    return f"{number}/{replicate}"


def _pooled_plan(first_experiment: JoinedTasks, experiments: int, replicates: Sequence[str]) -> AnalysisPlan:
    """Return the plan of a launch with all replicates, at the share of alpha of the pooled answer."""
    plan = first_experiment.plan
    settings = next(iter(first_experiment.parts.values())).history.plan.experiment
    rule = Rule(
        control=settings.control,
        alpha=alpha_of_pooling(plan.design.alpha, experiments),
        looks=(len(replicates),),
        claim=settings.claim,
        variances=settings.variances,
        shape=settings.shape,
    )
    return make_plan(plan.groups, replicates, plan.scales, rule)


def _rows(experiments: Sequence[JoinedTasks]) -> Iterator[Observation]:
    """Yield the planned runs of all experiments, finished or lost, under their pooled names."""
    for number, item in enumerate(experiments):
        for task, part in item.parts.items():
            for row in rows_of(part.history, task):
                if row.replicate in item.plan.replicates:
                    replicate = _replicate(number, row.replicate)
                    yield msgspec.structs.replace(row, group=part.names[row.group], replicate=replicate)


def _facts(parts: Sequence[JoinedExperiment]) -> Facts:
    """Return the facts of one task that hold for all experiments."""
    return joined_facts(parts, [facts_of(part.history, progress_of(part.history)) for part in parts])


def _pooled(comparison: Comparison, ends: Sequence[int]) -> PooledComparison:
    """Return one pooled comparison; `ends`: after how many replicates each experiment ends."""
    differences = _split(comparison, ends)
    return PooledComparison(
        comparison=comparison,
        experiments=len(ends),
        planned_pairs=len(comparison.pairs),
        means=means_of(differences),
        disagreement=disagreement(differences),
    )


def _split(comparison: Comparison, ends: Sequence[int]) -> list[Floats]:
    """Return the differences of each experiment."""
    pairs = comparison.pairs
    experiment_of_pair = np.searchsorted(ends, pairs.replicate, side="right")
    return [pairs.differences[experiment_of_pair == number] for number in range(len(ends))]
