"""The looks of an experiment, interim and last: which comparisons crossed their boundary, and when. Pure.

Group-sequential with alpha passed on: if a comparison crosses and its difference is shown to be larger than the
margin, its share goes to the comparisons still open, which are tested again at the same look (after Maurer & Bretz
2013). A smaller difference could still be claimed to lie within the margin, so its share is not free. All claims
about the margin are tested at the share that a comparison held first. So the claims of all comparisons together err
with probability alpha. A stop for futility decides nothing: the comparison keeps its share of alpha and stays
INCONCLUSIVE, whatever pairs come later, and no other bound relies on the stop (non-binding). After the last planned
look of an extended plan, and in an open-ended one, every replicate is followed by a look under the anytime-valid t.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from esper_ab.design.design import Contrast, Design
from esper_ab.stats.pair import Data, Pair, Samples
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.look import Look, take_look
from esper_ab.verdict.observations import Cells, Observations
from esper_ab.verdict.pairing import Pairing, pair_up, runs_of, sampled
from esper_ab.verdict.tuning import tune

LookDecision = Literal["open", "crossed", "equivalent", "futile"]


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The looks taken so far at one comparison, and their decision. A decision is never reversed."""

    looks: tuple[Look, ...]  # up to the stop if the design stops early, else all
    decision: LookDecision
    decided_at: int | None  # replicates
    direction: int  # +1: a lies above b, -1: below, 0: not crossed
    finished: bool  # every required look was taken; if comparisons stop early, the deciding look is the last
    later: tuple[Pair, ...] = ()  # pairs after the decision, which no number uses

    @property
    def last(self) -> Look | None:
        """The newest look taken."""
        return self.looks[-1] if self.looks else None

    @property
    def claimed(self) -> bool:
        """True if a look made a claim, so that the comparison is neither open nor stopped for futility."""
        return self.decision in ("crossed", "equivalent")

    @property
    def standing(self) -> LookDecision:
        """The decision if the last look confirms it, as it always does after an early stop; else "open".

        Reports use the numbers of the last look, so no claim appears next to an estimate that contradicts it.
        """
        if not self.claimed or self.upheld_by(self.looks[-1]):
            return self.decision
        return "open"

    def upheld_by(self, look: Look) -> bool:
        """True if `look`, which is the last look or a retake of it with different runs, supports the claim."""
        if self.decision == "equivalent":
            return look.equivalent
        return look.crossed and look.mean is not None and look.mean * self.direction > 0.0


@dataclass
class _Track:
    """State of one comparison between two looks."""

    design: Design  # of the experiment, with the margin and the outcome of this comparison
    data: Data
    looks: list[Look] = field(default_factory=list)
    decision: LookDecision = "open"
    decided_at: int | None = None
    direction: int = 0
    held: int = 0  # number of comparisons that shared alpha when it was decided, which fixes its share
    passed_on: bool = False  # whether its share was passed on: it crossed, and is larger than the margin


def courses_of(
    design: Design,
    pairs: Mapping[Contrast, Data],
    complete: int,
    own: Mapping[Contrast, Design] | None = None,
) -> dict[Contrast, Course]:
    """Return the course of every comparison of the design after its first `complete` replicates.

    `complete`: number of leading replicates whose runs are all finished or lost. `pairs`: pairs in any order (those of
    later replicates are ignored), or unpaired runs, which have a single look. Replicates are numbered from 0. `own`:
    by comparison, the design with its own margin and outcome, if these differ between comparisons.
    """
    tracks = {}
    for contrast in design.comparisons:
        own_design = own[contrast] if own else design
        tracks[contrast] = _Track(design=own_design, data=pairs.get(contrast, ()))
    for replicates in _looks(design, complete):
        _take(design, replicates, list(tracks.values()))
    planned = complete >= max(design.looks, default=0)  # whether every planned look was taken
    over = planned and design.anytime_after is None
    courses = {}
    for contrast, track in tracks.items():
        decided = track.decision != "open" and (design.early_stop or planned)
        courses[contrast] = Course(
            looks=tuple(track.looks),
            decision=track.decision,
            decided_at=track.decided_at,
            direction=track.direction,
            finished=decided or over,
        )
    return courses


def retake(design: Design, look: Look, data: Data) -> Look:
    """Take `look` again with different runs, at the same bounds."""
    return take_look(design, look.replicates, data, round(design.alpha / look.alpha))


def _looks(design: Design, complete: int) -> Iterator[int]:
    yield from (look for look in design.looks if look <= complete)
    if design.anytime_after is not None:
        yield from range(design.anytime_after + 1, complete + 1)


def _take(design: Design, replicates: int, tracks: list[_Track]) -> None:
    """Take one look at every comparison that still takes part."""
    n_open = sum(not track.passed_on for track in tracks)
    undecided = [track for track in tracks if track.decision == "open"]
    if not design.early_stop:
        for track in tracks:
            if track.decision != "open":
                track.looks.append(take_look(track.design, replicates, track.data, track.held))
    while True:
        seen = [(track, take_look(track.design, replicates, track.data, n_open)) for track in undecided]
        crossing = [(track, look) for track, look in seen if look.crossed]
        if not crossing:
            break
        for track, look in crossing:
            _decide(track, look, "crossed", n_open)
            track.passed_on = _beyond(look, track.design.margin)
        n_open -= sum(track.passed_on for track, _ in crossing)
        undecided = [track for track, look in seen if not look.crossed]
    for track, look in seen:
        if look.equivalent:
            _decide(track, look, "equivalent", n_open)
        elif look.futile:
            _decide(track, look, "futile", n_open)
        else:
            track.looks.append(look)


def _decide(track: _Track, look: Look, decision: LookDecision, n_open: int) -> None:
    track.looks.append(look)
    track.decision = decision
    track.decided_at = look.replicates
    track.held = n_open
    if decision != "crossed" or not look.mean:
        return
    if look.mean > 0.0:
        track.direction = 1
    else:
        track.direction = -1


def _beyond(look: Look, margin: float) -> bool:
    """True if the repeated interval lies outside +-margin."""
    above = look.low is not None and look.low >= margin
    below = look.high is not None and look.high <= -margin
    return above or below


@dataclass(frozen=True, kw_only=True)
class Courses:
    """State of every comparison after the looks that could be taken."""

    complete: int  # leading replicates that have all runs that the last look needed
    courses: Mapping[Contrast, Course]  # in the order of the design
    pairings: Mapping[Contrast, Pairing]  # for runs done elsewhere, those before a gap and before an early stop


def follow(plan: AnalysisPlan, observations: Observations) -> Courses:
    """Take every look whose runs all exist or are lost.

    A look needs the runs of both groups of every comparison that is still open or, if there are no early stops, the
    runs of all groups. Exploratory observations have a single look, at all runs. If the plan has cells, each group is
    represented by its best cell.
    """
    if plan.cells:
        observations = tune(observations, plan).observations
    return take_looks(plan, observations)


def take_looks(plan: AnalysisPlan, observations: Observations) -> Courses:
    """Take every look as `follow` does, for observations in which each group has one cell."""
    cells = observations.cells
    comparisons = plan.design.comparisons
    early_stop = plan.design.early_stop
    if observations.exploratory:
        pairings = pairings_of(plan, observations)
        ready = dict.fromkeys(comparisons, plan.design.looks[-1])
    else:
        pairings = {
            contrast: pair_up(cells, contrast, plan.scales, plan.replicates, planned=True) for contrast in comparisons
        }
        ready = {contrast: _ready(plan, cells, contrast) for contrast in comparisons}
    complete, courses = _looked(plan, pairings, ready)
    done_elsewhere = not observations.repeatable and not observations.exploratory
    for contrast, course in courses.items():
        existing = _pairs_of(pairings[contrast])
        decided_at = course.decided_at if early_stop else None
        if done_elsewhere:
            used = plan.replicates[: ready[contrast] if decided_at is None else decided_at]
            pairings[contrast] = pair_up(cells, contrast, plan.scales, used, planned=True)
        pairings[contrast] = replace(pairings[contrast], existing=existing)
        if decided_at is not None:
            later = tuple(pair for pair in existing if pair.replicate >= decided_at)
            courses[contrast] = msgspec.structs.replace(course, later=later)
    return Courses(complete=complete, courses=courses, pairings=pairings)


def _pairs_of(pairing: Pairing) -> tuple[Pair, ...]:
    """Return the pairs; () if the runs form none."""
    if isinstance(pairing.pairs, Samples):
        return ()
    return pairing.pairs


def pairings_of(plan: AnalysisPlan, observations: Observations) -> dict[Contrast, Pairing]:
    """Form the pairs of exploratory observations, or two samples if the runs are unpaired."""
    cells = observations.cells
    comparisons = plan.design.comparisons
    if not plan.paired:
        return {contrast: sampled(cells, contrast, plan.scales, plan.replicates) for contrast in comparisons}
    absent_lost = not observations.partners_left_out
    return {
        contrast: pair_up(cells, contrast, plan.scales, plan.replicates, absent_lost=absent_lost)
        for contrast in comparisons
    }


def _ready(plan: AnalysisPlan, cells: Cells, contrast: Contrast) -> int:
    """Count the leading replicates in which both groups have their runs, finished or lost."""
    for place, replicate in enumerate(plan.replicates):
        for group in contrast.groups:
            if not runs_of(cells, group, contrast.task, plan.scales, replicate):
                return place
    return len(plan.replicates)


def _looked(
    plan: AnalysisPlan, pairings: Mapping[Contrast, Pairing], ready: Mapping[Contrast, int]
) -> tuple[int, dict[Contrast, Course]]:
    """Take one look after another; return the number of replicates at the last look, and the courses."""
    design = plan.design
    complete = 0
    own = {contrast: plan.design_of(contrast) for contrast in pairings}
    data = {contrast: pairing.pairs for contrast, pairing in pairings.items()}
    while True:
        courses = courses_of(design, data, complete, own)
        continued = [one for one in ready if not design.early_stop or courses[one].decision == "open"]
        reach = min((ready[contrast] for contrast in continued), default=0)
        after_planned = None if design.anytime_after is None else reach
        following = next((look for look in design.looks if look > complete), after_planned)
        if following is None or not complete < following <= reach:
            return complete, courses
        complete = following
