"""Derive the plan and the observations for `judge` from a journal history. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from esper_ab.analysis.guarded_measures import guarded_rows
from esper_ab.analysis.reused_runs import rests_on_conditions
from esper_ab.design.design import Contrast, Design
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import outcome_of
from esper_ab.settings.differences import axes
from esper_ab.stats.pair import NO_PAIRS, Pairs, Samples
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.looks import PlanProgress, take_looks
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Facts, Observations
from esper_ab.verdict.pairing import pair_up
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import Scale

ComparedPairs = Mapping[Contrast, Pairs]


def plan_of(history: History) -> AnalysisPlan:
    """Return the analysis plan of an experiment: its replicates so far, named by number, and its design."""
    design = history.design
    replicates = tuple(str(block.replicate) for block in history.blocks)
    return AnalysisPlan(groups=history.groups, replicates=replicates, scales=(scale_of(design),), design=design)


def scale_of(design: Design) -> Scale:
    """Return how the outcome of an experiment is measured."""
    return Scale(task="", outcome=design.outcome, margin=design.margin, worst=design.worst)


def observe(history: History, facts: Facts | None = None) -> Observations:
    """Return the observations of an experiment, to be judged by its own plan."""
    rows = Runs.of(rows_of(history))
    facts_by_task = None
    if facts is not None:
        facts_by_task = {"": facts}
    guardrails: tuple[Runs, ...] = ()
    if history.design.guards is not None:
        guardrails = tuple(guarded_rows(history, rows, guardrail) for guardrail in history.design.guards.items)
    return Observations(
        source="", pair_column="replicate", rows=rows, facts=facts_by_task, repeatable=True, guardrails=guardrails
    )


def rows_of(history: History, task: str = "") -> Iterator[Observation]:
    """Yield the runs that have an outcome or were lost; `place` is their start order and lane in the block."""
    for block in history.blocks:
        for place, spec in enumerate(block.runs):
            run = history.runs[spec.ref.name]
            if run.evaluation is None and not run.lost:
                continue  # not finished yet, or not needed
            yield Observation(
                group=run.ref.group_id,
                replicate=str(run.ref.replicate),
                task=task,
                place=place,
                run=run.ref.name,
                value=outcome_of(run, history.design.outcome_over),
                cancelled=run.lost and not run.failed,
            )


def progress_of(history: History) -> PlanProgress:
    """Take the looks by the records alone, so that the coordinator and the report agree."""
    return take_looks(plan_of(history), observe(history))


def pairs_in(progress: PlanProgress) -> ComparedPairs:
    """Return the pairs of every comparison, in the order of the design."""
    pairs = {}
    for contrast, pairing in progress.pairings.items():
        if not isinstance(pairing.pairs, Samples):
            pairs[contrast] = pairing.pairs
    return pairs


def pairs_of(history: History, contrast: Contrast) -> Pairs:
    """Return the pairs of any two groups, whether the plan compares them or not."""
    plan = plan_of(history)
    pairs = pair_up(observe(history).rows, contrast, plan.scales, plan.replicates).pairs
    if isinstance(pairs, Samples):
        return NO_PAIRS
    return pairs


def same_records(history: History, contrast: Contrast, pairs: Pairs) -> bool:
    """True if there are pairs and both runs of each pair have equal digests throughout.

    Runs of another day whose seeds do not repeat are never the same.
    """
    runs_a = {run.ref.replicate: run for run in history.of_group(contrast.a)}
    runs_b = {run.ref.replicate: run for run in history.of_group(contrast.b)}
    for pair in pairs:
        run_a = runs_a[pair.replicate]
        run_b = runs_b[pair.replicate]
        if digests_of(run_a) != digests_of(run_b) or rests_on_conditions(history, (run_a.ref.name, run_b.ref.name)):
            return False
    return len(pairs) > 0


def tells_seeds_apart(history: History, group: str, pairs: Pairs) -> bool:
    """True if most runs of a group have records of their own; with few different outcomes, other groups may match."""
    runs = {run.ref.replicate: run for run in history.of_group(group)}
    records = {tuple(digests_of(runs[pair.replicate]).values()) for pair in pairs}
    return 2 * len(records) > len(pairs)


def axes_of(history: History, contrast: Contrast) -> tuple[str, ...]:
    """Return the settings in which the groups differ and which one of them reads, the state of the code among them."""
    experiment = history.plan.experiment
    groups = {group.name: group for group in experiment.groups}
    return axes(groups[contrast.a], groups[contrast.b], experiment.states_of_code)


def digests_of(run: RunHistory) -> dict[str, str]:
    """Return the digests of all records of a run, in order."""
    digests = {}
    for index, digest in zip(run.columns.episodes, run.columns.digests, strict=True):
        digests[f"episode {index}"] = digest
    if run.evaluation:
        digests["evaluation"] = run.evaluation.digest
    return digests
