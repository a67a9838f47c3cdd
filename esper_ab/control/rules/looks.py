"""Interim looks: which block may start before the next one, when one is due, and what follows from it."""

from __future__ import annotations

import msgspec

from esper_ab.analysis.courses import courses, settled
from esper_ab.analysis.pairs import all_pairs, complete_replicates
from esper_ab.design.design import Contrast
from esper_ab.journal.events import LookTaken, PlanExtended
from esper_ab.journal.fold import History
from esper_ab.plan.blocks import Block, extend


def remaining(history: History, block: Block) -> Block:
    """The block without the runs that are not to be started: of groups that left, or given up."""
    runs = tuple(spec for spec in block.runs if history.runs[spec.ref.name].expected)
    return msgspec.structs.replace(block, runs=runs)


def may_start(history: History, block: Block) -> bool:
    """Whether no look that is still to be taken could make this block superfluous."""
    ahead = (look for look in history.design.looks if look > _looked_at(history))
    return not history.design.early_stop or all(block.replicate < look for look in ahead)


def due(history: History) -> tuple[LookTaken | PlanExtended, ...]:
    """What is to be recorded now, after some block was completed: looks, then more blocks of an open-ended plan."""
    looks = _to_take(history)
    found: list[LookTaken | PlanExtended] = [*_taken(history, looks)] if looks else []
    # From the end, where runs are that were not started: all of them at every look would be quadratic.
    to_start = any(run.expected and not run.started for run in reversed(history.runs.values()))
    if history.plan.experiment.open_ended and not to_start and not all_settled(history):
        batch = history.plan.experiment.replicates
        found.append(PlanExtended(extension=extend(history.plan, history.design, history.replicates, batch)))
    return tuple(found)


def look_due(history: History) -> bool:
    """Whether a look is still to be taken of what is complete."""
    return bool(_to_take(history))


def _to_take(history: History) -> tuple[int, ...]:
    """Replicates that were left out as a whole are complete, but nobody looks at what never started."""
    complete, looked = complete_replicates(history), _looked_at(history)
    while complete and all(history.runs[spec.ref.name].left_out for spec in history.blocks[complete - 1].runs):
        complete -= 1
    return tuple(look for look in _looks(history, complete) if look > looked)


def _looked_at(history: History) -> int:
    return history.looks[-1].replicates if history.looks else 0


def _looks(history: History, complete: int) -> list[int]:
    """Planned looks up to `complete`; where the anytime-valid rule holds, only the newest: it looks at every pair."""
    planned = [look for look in history.design.looks if look <= complete]
    after = history.design.anytime_after
    return [*planned, complete] if after is not None and complete > after else planned


def _taken(history: History, looks: tuple[int, ...]) -> list[LookTaken]:
    followed = courses(history, all_pairs(history))
    since = _looked_at(history)
    taken: list[LookTaken] = []
    for look in looks:
        stopped = [one for one in followed if since < (followed[one].decided_at or 0) <= look]
        futile = tuple(one for one in stopped if followed[one].decision == "futile")
        decided = tuple(one for one in stopped if one not in futile)
        still_open = [one for one in followed if not 0 < (followed[one].decided_at or 0) <= look]
        leaving = _leaving(history, still_open, taken) if history.design.early_stop else ()
        taken.append(LookTaken(replicates=look, decided=decided, futile=futile, leaving=leaving))
        since = look
    return taken


def _leaving(history: History, still_open: list[Contrast], taken: list[LookTaken]) -> tuple[str, ...]:
    """Groups of comparisons only that were decided or stopped; the untested stay as long as anything is compared."""
    gone = {group for look in (*history.looks, *taken) for group in look.leaving}
    needed = {group for one in still_open for group in (one.a, one.b)}
    untested = set(history.plan.experiment.untested) if still_open else set()
    return tuple(group for group in history.groups if group not in needed | untested | gone)


def all_settled(history: History) -> bool:
    """Whether more replicates could decide nothing."""
    pairs = all_pairs(history)
    return all(settled(pairs[one], course) for one, course in courses(history, pairs).items())
