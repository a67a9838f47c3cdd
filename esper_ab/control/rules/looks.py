"""Interim looks: when a look is due, which blocks must wait for it, and which runs it makes superfluous."""

from __future__ import annotations

import msgspec

from esper_ab.analysis.observe import pairs_of, progress_of, same_records
from esper_ab.design.design import Contrast
from esper_ab.journal.events import LookTaken, PlanExtended
from esper_ab.journal.fold import History, RunHistory
from esper_ab.plan.blocks import extend
from esper_ab.plan.plan import Block
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import outcomes
from esper_ab.stats.rounding import alike
from esper_ab.verdict.copies import equal_groups
from esper_ab.verdict.guardrails import guardrail_results
from esper_ab.verdict.looks import PlanProgress
from esper_ab.verdict.verdict import Verdict


def remaining(history: History, block: Block) -> Block:
    """Return the block without the runs that will not be started: those of groups that left, and those given up."""
    runs = tuple(spec for spec in block.runs if history.runs[spec.ref.name].expected)
    return msgspec.structs.replace(block, runs=runs)


def may_start(history: History, block: Block) -> bool:
    """True if no future look could make this block superfluous."""
    if not history.design.early_stop:
        return True
    open_looks = [look for look in history.design.looks if look > _last_look(history)]
    replicates = _identical_at(history)
    if any(run.expected for run in _runs_before(history, replicates)):
        open_looks.append(replicates)
    return all(block.replicate < look for look in open_looks)


def due(history: History) -> tuple[LookTaken | PlanExtended, ...]:
    """Return the events to record after a block was completed: looks, then an extension of an open-ended plan."""
    if (last_event := _end_as_identical(history)) is not None:
        return (last_event,)
    likely_look = _likely(history)
    extensible = history.plan.experiment.open_ended and _all_started(history)
    if not likely_look and not extensible:
        return ()
    progress = progress_of(history)
    events: list[LookTaken | PlanExtended] = []
    if likely_look:
        events += _taken(history, progress)
    if extensible and not all_settled(progress):
        batch = history.plan.experiment.seeds
        extension = extend(history.plan, history.design, history.replicates, batch)
        events.append(PlanExtended(extension=extension))
    return tuple(events)


def _identical_at(history: History) -> int:
    """Return after how many replicates the plan ends next if all records of its groups agree; 0: it does not.

    Guardrails that are not in the records are tested at planned looks, so such a plan ends at one.
    """
    replicates = history.plan.experiment.identical_after
    guards = history.design.guards
    if replicates and guards is not None and not guards.recorded:
        return _next_look(history) or 0
    return 0 if history.looks else replicates


def _runs_before(history: History, replicates: int) -> tuple[RunHistory, ...]:
    """Return the runs of the first `replicates` replicates."""
    return tuple(history.runs[spec.ref.name] for block in history.blocks[:replicates] for spec in block.runs)


def _end_as_identical(history: History) -> LookTaken | None:
    """Return the event that ends a plan whose groups were one computation in each of its first seeds; else None.

    The outcomes must vary and have several digits: two codes may both reach the best possible score.
    """
    replicates = _identical_at(history)
    if not replicates or not all(run.evaluation for run in _runs_before(history, replicates)):
        return None
    for contrast in history.design.comparisons:
        pairs = pairs_of(history, contrast)
        is_same = same_records(history, contrast, pairs) and equal_groups(*outcomes(pairs))
        if not is_same or len(pairs) < replicates:
            return None
    if not _guardrails_hold(history):
        return None
    return LookTaken(
        replicates=replicates,
        decided=(),
        leaving=_leaving(history, [], []),
        identical=history.design.comparisons,
    )


def _guardrails_hold(history: History) -> bool:
    """True if no comparison, all of whose records agree, has a guardrail that is not shown to hold."""
    if history.design.guards is None:
        return True
    progress = progress_of(history)
    results = [
        guardrail_results(history.design, comparison, progress.pairings[contrast], Verdict.IDENTICAL)
        for contrast, comparison in progress.comparisons.items()
    ]
    return all(items and all(item.result == "holds" for item in items) for items in results)


def look_due(history: History) -> bool:
    """True if a look at the completed data is still to be taken."""
    return _likely(history) and bool(_looks_to_take(history, progress_of(history)))


def _all_started(history: History) -> bool:
    """True if no run is left to start. Checks the last runs first: scanning all at every look would be quadratic."""
    return not any(run.expected and not run.started for run in reversed(history.runs.values()))


def _likely(history: History) -> bool:
    """True if the runs of the last block that the next look needs are final, so that the look may be due.

    This check is cheap, as it runs after every block; `take_looks` checks the blocks before it.
    """
    upcoming_look = _next_look(history)
    if upcoming_look is None or upcoming_look > len(history.blocks):
        return False
    contrasts = set(history.design.comparisons)
    if history.design.early_stop:
        for look in history.looks:
            contrasts -= {*look.decided, *look.futile}
    needed_groups = {group for contrast in contrasts for group in contrast.groups}
    last_block = history.blocks[upcoming_look - 1]
    return not any(
        history.runs[spec.ref.name].expected for spec in last_block.runs if spec.ref.group_id in needed_groups
    )


def _next_look(history: History) -> int | None:
    """Return the next planned look or, under the anytime-valid rule, the next pair; None if no look is left."""
    last_look = _last_look(history)
    for look in history.design.looks:
        if look > last_look:
            return look
    if history.design.anytime_after is None:
        return None
    return last_look + 1


def _last_look(history: History) -> int:
    return history.looks[-1].replicates if history.looks else 0


def _looks_to_take(history: History, progress: PlanProgress) -> list[int]:
    """Return the looks to take now; under the anytime-valid rule only the newest, which covers all pairs before it."""
    looks = [look for look in history.design.looks if look <= progress.complete]
    anytime_after = history.design.anytime_after
    if anytime_after is not None and progress.complete > anytime_after:
        looks.append(progress.complete)
    return [look for look in looks if look > _last_look(history)]


def _taken(history: History, progress: PlanProgress) -> list[LookTaken]:
    """Return the looks to record, with the comparisons that each one decides or stops, and the groups that leave."""
    last_look = _last_look(history)
    taken_looks: list[LookTaken] = []
    for look in _looks_to_take(history, progress):
        decided_contrasts = []
        futile_contrasts = []
        open_contrasts = []
        for contrast, comparison in progress.comparisons.items():
            deciding_replicates = comparison.decided_at
            if deciding_replicates is None or deciding_replicates > look:
                open_contrasts.append(contrast)
            elif deciding_replicates <= last_look:
                continue  # an earlier look recorded it
            elif comparison.decision == "futile":
                futile_contrasts.append(contrast)
            else:
                decided_contrasts.append(contrast)
        leaving_groups = _leaving(history, open_contrasts, taken_looks) if history.design.early_stop else ()
        taken_looks.append(
            LookTaken(
                replicates=look,
                decided=tuple(decided_contrasts),
                futile=tuple(futile_contrasts),
                leaving=leaving_groups,
            )
        )
        last_look = look
    return taken_looks


def _leaving(history: History, open_contrasts: list[Contrast], taken_looks: list[LookTaken]) -> tuple[str, ...]:
    """Return the groups whose comparisons are all decided or stopped; untested groups stay while any is open."""
    left_groups = {group for look in (*history.looks, *taken_looks) for group in look.leaving}
    needed_groups = {group for contrast in open_contrasts for group in contrast.groups}
    if open_contrasts:
        needed_groups |= set(history.plan.experiment.untested)
    return tuple(group for group in history.groups if group not in needed_groups | left_groups)


def all_settled(progress: PlanProgress) -> bool:
    """True if more replicates could not decide anything: every comparison is decided or has a constant difference."""
    for contrast, comparison in progress.comparisons.items():
        data = progress.pairings[contrast].pairs
        constant = len(data) >= LEAST_PAIRS and alike(*outcomes(data)) == len(data)
        if comparison.decision == "open" and not constant:
            return False
    return True
