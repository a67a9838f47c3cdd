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
    decided_at = _comparison(progress).decided_at
    if decided_at is None or not plan.design.early_stop:
        return
    places = {name: place for place, name in enumerate(plan.replicates)}
    later = [row for row in observations.rows if places.get(row.replicate, 0) >= decided_at]
    if later:
        are = "is" if len(later) == 1 else "are"
        yield (
            f"Not used: {counted(len(later), 'outcome')} after trial {2 * decided_at}, at which the comparison was "
            f"decided, {are} left out."
        )


def next_trials(plan: AnalysisPlan, observations: Observations, progress: PlanProgress) -> str:
    """Say that the trials can stop, or up to which trial the next look needs outcomes; "" after the last look."""
    comparison = _comparison(progress)
    planned = len(plan.replicates)
    decided_at = comparison.decided_at
    unit = plan.design.unit
    if decided_at is not None and plan.design.early_stop:
        if decided_at == planned:
            return ""
        return f"Decided after {decided_at} of {planned} {unit}s for each arm: stop."
    looks = [look for look in plan.design.looks if look > progress.complete]
    if not looks:
        return ""
    upcoming = looks[0]
    places = {name: place for place, name in enumerate(plan.replicates)}
    done = sum(places.get(row.replicate, upcoming) < upcoming for row in observations.rows)
    number = plan.design.looks.index(upcoming) + 1
    missing = 2 * upcoming - done
    lacking = f"{counted(missing, 'outcome')} is" if missing == 1 else f"{counted(missing, 'outcome')} are"
    return (
        f"Look {number} of {len(plan.design.looks)} is after trial {2 * upcoming} ({upcoming} {unit}s for each arm): "
        f"{lacking} missing."
    )


def _comparison(progress: PlanProgress) -> ComparisonProgress:
    """Return the progress of the only comparison."""
    (comparison,) = progress.comparisons.values()
    return comparison
