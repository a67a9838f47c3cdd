"""Plan and observations -> the looks that were taken and what they decided. Pure.

The coordinator calls it after every block, and `judge` at the end: nothing else shares alpha or passes it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from esper_ab.design.design import Contrast, Design
from esper_ab.stats.pair import Data
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.looks import Course, courses_of
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.pairing import Cells, Pairing, cells_of, pair_up, runs_of, sampled
from esper_ab.verdict.tuning import tune


@dataclass(frozen=True, kw_only=True)
class Courses:
    """How every comparison stands after the looks that could be taken."""

    complete: int  # leading replicates of which all runs that the last look asked for are there
    courses: Mapping[Contrast, Course]  # in the order of the design
    pairings: Mapping[Contrast, Pairing]  # of runs made elsewhere those before a gap and before an early stop


def follow(plan: AnalysisPlan, observations: Observations) -> Courses:
    """Take every look for which all runs that it asks for are there, lost ones included.

    A look asks for both groups of every comparison that is still open; without early stops, of all. Exploratory
    observations have one look, at all of them. Where the plan has cells, each group's own best one is looked at.
    """
    if plan.cells:
        observations = tune(observations, plan.groups, plan.cells, plan.choosing, plan.scales[0]).observations
    return take_looks(plan, observations)


def take_looks(plan: AnalysisPlan, observations: Observations) -> Courses:
    """Take every look as `follow` does, once each group has one cell."""
    if observations.exploratory:
        return _at_once(plan, observations)
    cells = cells_of(observations)
    ready = {contrast: _ready(plan, cells, contrast) for contrast in plan.design.comparisons}
    pairings = {one: pair_up(cells, one, plan.scales, plan.replicates, join=False) for one in ready}
    complete, courses = _looked(plan, {one: pairing.pairs for one, pairing in pairings.items()}, ready)
    for contrast, course in courses.items() if not observations.repeatable else ():
        ended = course.decided_at if plan.design.early_stop else None
        used = plan.replicates[: ready[contrast] if ended is None else ended]
        pairings[contrast] = pair_up(cells, contrast, plan.scales, used, join=False)
    return Courses(complete=complete, courses=courses, pairings=pairings)


def pairings_of(plan: AnalysisPlan, observations: Observations) -> dict[Contrast, Pairing]:
    """Form the pairs of exploratory observations, or two samples where they form none."""
    form, cells = pair_up if plan.paired else sampled, cells_of(observations)
    return {one: form(cells, one, plan.scales, plan.replicates) for one in plan.design.comparisons}


def _at_once(plan: AnalysisPlan, observations: Observations) -> Courses:
    pairings, last = pairings_of(plan, observations), plan.design.looks[-1]
    data = {one: pairing.pairs for one, pairing in pairings.items()}
    return Courses(complete=last, courses=courses_of(plan.design, data, last, _own(plan)), pairings=pairings)


def _own(plan: AnalysisPlan) -> dict[Contrast, Design]:
    return {contrast: plan.design_of(contrast) for contrast in plan.design.comparisons}


def _ready(plan: AnalysisPlan, cells: Cells, contrast: Contrast) -> int:
    """Count the leading replicates of which both groups have their runs, with an outcome or lost."""
    for place, replicate in enumerate(plan.replicates):
        if not all(runs_of(cells, group, contrast.task, plan.scales, replicate) for group in contrast.groups):
            return place
    return len(plan.replicates)


def _looked(
    plan: AnalysisPlan, data: Mapping[Contrast, Data], ready: Mapping[Contrast, int]
) -> tuple[int, Mapping[Contrast, Course]]:
    """Take one look after the other; return the replicates of the last one, and the courses."""
    design, own, complete = plan.design, _own(plan), 0
    while True:
        courses = courses_of(design, data, complete, own)
        asked = [one for one in ready if not design.early_stop or courses[one].decision == "open"]
        reach = min((ready[one] for one in asked), default=0)
        following = next((look for look in design.looks if look > complete), None)
        if following is None and design.anytime_after is not None:
            following = reach
        if following is None or not complete < following <= reach:
            return complete, courses
        complete = following
