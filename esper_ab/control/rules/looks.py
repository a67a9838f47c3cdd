"""Interim looks: when a look is due, which blocks must wait for it, and which runs it makes superfluous."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

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
    ahead = (look for look in history.design.looks if look > _last_look(history))
    return not history.design.early_stop or all(block.replicate < look for look in ahead)


def due(history: History) -> tuple[LookTaken | PlanExtended, ...]:
    """Return the events to record after a block was completed: looks, then an extension of an open-ended plan."""
    events: list[LookTaken | PlanExtended] = []
    if _likely(history):
        events += _take_looks(history, followed(history))
    # From the end, where the runs are that have not started: scanning all runs at every look would be quadratic.
    to_start = any(run.expected and not run.started for run in reversed(history.runs.values()))
    if history.plan.experiment.open_ended and not to_start and not all_settled(history):
        batch = history.plan.experiment.seeds
        events.append(PlanExtended(extension=extend(history.plan, history.design, history.replicates, batch)))
    return tuple(events)


def look_due(history: History) -> bool:
    """True if a look at the completed data is still to be taken."""
    return _likely(history) and bool(_open_looks(history, followed(history)))


def _likely(history: History) -> bool:
    """True if the runs that the next look needs are final. This check is cheap, as it runs after every block."""
    last_look = _last_look(history)
    design = history.design
    after_planned = None if design.anytime_after is None else last_look + 1
    next_look = next((look for look in design.looks if look > last_look), after_planned)
    if next_look is None or next_look > len(history.blocks):
        return False
    ended: set[Contrast] = set()
    if design.early_stop:
        for look in history.looks:
            ended |= {*look.decided, *look.futile}
    needed = _groups_of(contrast for contrast in design.comparisons if contrast not in ended)
    last = history.blocks[next_look - 1]
    return not any(history.runs[spec.ref.name].expected for spec in last.runs if spec.ref.group_id in needed)


def _groups_of(contrasts: Iterable[Contrast]) -> set[str]:
    return set(chain.from_iterable(contrast.groups for contrast in contrasts))


def _last_look(history: History) -> int:
    """Return the number of replicates at the last look; 0 before the first."""
    return history.looks[-1].replicates if history.looks else 0


def _open_looks(history: History, now: Courses) -> list[int]:
    """Return the looks to take now; under the anytime-valid rule only the newest, which covers all pairs before it."""
    planned = [look for look in history.design.looks if look <= now.complete]
    after = history.design.anytime_after
    if after is not None and now.complete > after:
        planned.append(now.complete)
    return [look for look in planned if look > _last_look(history)]


def _take_looks(history: History, now: Courses) -> list[LookTaken]:
    ended_at = {contrast: course.decided_at or 0 for contrast, course in now.courses.items()}  # 0: still open
    since = _last_look(history)
    taken: list[LookTaken] = []
    for look in _open_looks(history, now):
        ended = [contrast for contrast, end in ended_at.items() if since < end <= look]
        futile = tuple(contrast for contrast in ended if now.courses[contrast].decision == "futile")
        decided = tuple(contrast for contrast in ended if contrast not in futile)
        leaving: tuple[str, ...] = ()
        if history.design.early_stop:
            still_open = [contrast for contrast, end in ended_at.items() if not 0 < end <= look]
            leaving = _leaving(history, still_open, taken)
        taken.append(LookTaken(replicates=look, decided=decided, futile=futile, leaving=leaving))
        since = look
    return taken


def _leaving(history: History, still_open: list[Contrast], taken: list[LookTaken]) -> tuple[str, ...]:
    """Return the groups whose comparisons are all decided or stopped; untested groups stay while any is open."""
    staying = _groups_of(still_open)
    if still_open:
        staying |= set(history.plan.experiment.untested)
    gone = set(chain.from_iterable(look.leaving for look in (*history.looks, *taken)))
    return tuple(group for group in history.groups if group not in staying | gone)


def all_settled(history: History) -> bool:
    """True if more replicates could not decide anything: every comparison is decided or has a constant difference."""
    now = followed(history)
    for contrast, course in now.courses.items():
        data = now.pairings[contrast].pairs
        constant = len(data) >= LEAST_PAIRS and alike(*outcomes(data)) == len(data)
        if course.decision == "open" and not constant:
            return False
    return True
