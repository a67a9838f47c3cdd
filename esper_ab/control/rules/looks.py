"""Interim looks: when a look is due, which blocks must wait for it, and which runs it makes superfluous."""

from __future__ import annotations

import msgspec

from esper_ab.analysis.observe import followed
from esper_ab.design.design import Contrast
from esper_ab.journal.events import LookTaken, PlanExtended
from esper_ab.journal.fold import History
from esper_ab.plan.blocks import extend
from esper_ab.plan.plan import Block
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import outcomes
from esper_ab.stats.rounding import alike
from esper_ab.verdict.looks import Courses


def remaining(history: History, block: Block) -> Block:
    """Return the block without the runs that will not be started: those of groups that left, and those given up."""
    runs = tuple(spec for spec in block.runs if history.runs[spec.ref.name].expected)
    return msgspec.structs.replace(block, runs=runs)


def may_start(history: History, block: Block) -> bool:
    """True if no future look could make this block superfluous."""
    ahead = (look for look in history.design.looks if look > _looked_at(history))
    return not history.design.early_stop or all(block.replicate < look for look in ahead)


def due(history: History) -> tuple[LookTaken | PlanExtended, ...]:
    """Return the events to record after a block was completed: looks, then an extension of an open-ended plan."""
    found: list[LookTaken | PlanExtended] = [*_taken(history, followed(history))] if _likely(history) else []
    # From the end, where the runs are that have not started: scanning all runs at every look would be quadratic.
    to_start = any(run.expected and not run.started for run in reversed(history.runs.values()))
    if history.plan.experiment.open_ended and not to_start and not all_settled(history):
        batch = history.plan.experiment.seeds
        found.append(PlanExtended(extension=extend(history.plan, history.design, history.replicates, batch)))
    return tuple(found)


def look_due(history: History) -> bool:
    """True if a look at the completed data is still to be taken."""
    return _likely(history) and bool(_to_take(history, followed(history)))


def _likely(history: History) -> bool:
    """True if the runs that the next look needs are final. This check is cheap, as it runs after every block."""
    looked = _looked_at(history)
    design = history.design
    after_planned = None if design.anytime_after is None else looked + 1
    following = next((look for look in design.looks if look > looked), after_planned)
    if following is None or following > len(history.blocks):
        return False
    if design.early_stop:
        over = {one for look in history.looks for one in (*look.decided, *look.futile)}
    else:
        over = set()
    needed = {group for one in design.comparisons if one not in over for group in (one.a, one.b)}
    last = history.blocks[following - 1]
    return not any(history.runs[spec.ref.name].expected for spec in last.runs if spec.ref.group_id in needed)


def _looked_at(history: History) -> int:
    return history.looks[-1].replicates if history.looks else 0


def _to_take(history: History, now: Courses) -> list[int]:
    """Return the looks to take now; under the anytime-valid rule only the newest, which covers all pairs before it."""
    planned = [look for look in history.design.looks if look <= now.complete]
    after = history.design.anytime_after
    if after is not None and now.complete > after:
        planned.append(now.complete)
    return [look for look in planned if look > _looked_at(history)]


def _taken(history: History, now: Courses) -> list[LookTaken]:
    courses = now.courses
    since = _looked_at(history)
    taken: list[LookTaken] = []
    for look in _to_take(history, now):
        stopped = [one for one in courses if since < (courses[one].decided_at or 0) <= look]
        futile = tuple(one for one in stopped if courses[one].decision == "futile")
        decided = tuple(one for one in stopped if one not in futile)
        still_open = [one for one in courses if not 0 < (courses[one].decided_at or 0) <= look]
        leaving = _leaving(history, still_open, taken) if history.design.early_stop else ()
        taken.append(LookTaken(replicates=look, decided=decided, futile=futile, leaving=leaving))
        since = look
    return taken


def _leaving(history: History, still_open: list[Contrast], taken: list[LookTaken]) -> tuple[str, ...]:
    """Return the groups whose comparisons are all decided or stopped; untested groups stay while any is open."""
    gone = {group for look in (*history.looks, *taken) for group in look.leaving}
    needed = {group for one in still_open for group in (one.a, one.b)}
    untested = set(history.plan.experiment.untested) if still_open else set()
    return tuple(group for group in history.groups if group not in needed | untested | gone)


def all_settled(history: History) -> bool:
    """True if more replicates could not decide anything: every comparison is decided or has a constant difference."""
    now = followed(history)
    for contrast, course in now.courses.items():
        data = now.pairings[contrast].pairs
        constant = len(data) >= LEAST_PAIRS and alike(*outcomes(data)) == len(data)
        if course.decision == "open" and not constant:
            return False
    return True
