"""How far an evaluation of two checkpoints has come: departures from its order, and the next trials. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.wording import counted
from esper_ab.stats.pair import outcomes
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.looks import ComparisonProgress, PlanProgress
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.question import AskedItems


def asked_trials(plan: AnalysisPlan, pairing: Pairing) -> AskedItems:
    """Return the items, or the trials of each arm, that an answer is about."""
    return AskedItems(
        level="checkpoints",
        closed=False,
        unit=plan.design.unit,
        items=min(map(len, outcomes(pairing.pairs))),
        runs_a=1,
        runs_b=1,
        shared=plan.paired,
    )


def trial_departures(plan: AnalysisPlan, observations: Observations, progress: PlanProgress) -> Iterator[str]:
    """Yield departures from the order of the trials, and trials after the decision."""
    yield from observations.departures
    deciding_trials = _comparison(progress).decided_at
    if deciding_trials is None or not plan.design.early_stop:
        return
    place_by_name = {name: place for place, name in enumerate(plan.replicates)}
    later_rows = [row for row in observations.rows if place_by_name.get(row.replicate, 0) >= deciding_trials]
    if later_rows:
        verb = "is" if len(later_rows) == 1 else "are"
        yield (
            f"Not used: {counted(len(later_rows), 'outcome')} after trial {2 * deciding_trials}, at which the "
            "comparison was "
            f"decided, {verb} left out."
        )


def next_trials(plan: AnalysisPlan, observations: Observations, progress: PlanProgress) -> str:
    """Say that the trials can stop, or up to which trial the next look needs outcomes; "" after the last look."""
    comparison = _comparison(progress)
    planned_trials = len(plan.replicates)
    deciding_trials = comparison.decided_at
    unit = plan.design.unit
    if deciding_trials is not None and plan.design.early_stop:
        if deciding_trials == planned_trials:
            return ""
        return f"Decided after {deciding_trials} of {planned_trials} {unit}s for each arm: stop."
    looks = [look for look in plan.design.looks if look > progress.complete]
    if not looks:
        return ""
    upcoming_look = looks[0]
    place_by_name = {name: place for place, name in enumerate(plan.replicates)}
    done_count = sum(place_by_name.get(row.replicate, upcoming_look) < upcoming_look for row in observations.rows)
    number = plan.design.looks.index(upcoming_look) + 1
    missing_count = 2 * upcoming_look - done_count
    missing_words = (
        f"{counted(missing_count, 'outcome')} is" if missing_count == 1 else f"{counted(missing_count, 'outcome')} are"
    )
    return (
        f"Look {number} of {len(plan.design.looks)} is after trial {2 * upcoming_look} ({upcoming_look} {unit}s for "
        "each arm): "
        f"{missing_words} missing."
    )


def _comparison(progress: PlanProgress) -> ComparisonProgress:
    """Return the progress of the only comparison."""
    (comparison,) = progress.comparisons.values()
    return comparison
