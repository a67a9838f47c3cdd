"""The looks of an experiment, interim and last: which comparisons crossed their boundary, and when. Pure.

Group-sequential with alpha passed on: a comparison that crosses and is shown to be larger than the margin hands its
share to those still open, which are tested again at the same look (after Maurer & Bretz 2013). Of a smaller one it
could still be claimed that it lies within the margin, so its share is not free. Everything about the margin is tested
at the share that a comparison held first. So all claims of all comparisons together err with probability alpha.
A look that stops for futility decides nothing: what it stops keeps its share of alpha and stays INCONCLUSIVE, whatever
pairs come later, and no other bound relies on it (non-binding).
After the last planned look of an extended plan, and in an open-ended one, every replicate is followed by a look under
the anytime-valid t.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from esper_ab.design.design import Contrast, Design
from esper_ab.stats.pair import Data
from esper_ab.verdict.look import Look, look_data, take_look

LookDecision = Literal["open", "crossed", "equivalent", "futile"]


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The looks taken so far at one comparison and what they decided. A decision is never taken back."""

    looks: tuple[Look, ...]  # up to the stop when the design stops early, else all
    decision: LookDecision
    decided_at: int | None  # replicates
    direction: int  # +1: a lies above b, -1: below, 0: not crossed
    finished: bool  # every look taken that the design asks for: the deciding one ends a comparison that stops early

    @property
    def last(self) -> Look | None:
        """The newest look taken."""
        return self.looks[-1] if self.looks else None

    @property
    def claimed(self) -> bool:
        """Whether a look made a claim: more than that it is open, or was stopped for futility."""
        return self.decision in ("crossed", "equivalent")

    @property
    def standing(self) -> LookDecision:
        """The decision where the last look shows it, too, as after an early stop; else "open".

        What is said rests on the numbers of the last look, so that no claim stands beside an estimate against it.
        """
        if self.decision in ("open", "futile"):
            return self.decision
        last = self.looks[-1]
        if self.decision == "equivalent":
            return "equivalent" if last.equivalent else "open"
        return "crossed" if last.crossed and last.mean is not None and last.mean * self.direction > 0.0 else "open"


@dataclass
class _Track:
    """State of one comparison between two looks."""

    design: Design  # of the experiment, with the margin and the outcome of this comparison
    data: Data
    looks: list[Look] = field(default_factory=list)
    decision: LookDecision = "open"
    decided_at: int | None = None
    direction: int = 0
    held: int = 0  # comparisons that shared alpha when it was decided: its share stays what it was
    passed_on: bool = False  # its share: it crossed, and is larger than the margin


def courses_of(
    design: Design, pairs: Mapping[Contrast, Data], complete: int,
    own: Mapping[Contrast, Design] | None = None,
) -> dict[Contrast, Course]:  # fmt: skip
    """Return the course of every comparison of the design after its first `complete` replicates.

    `complete`: leading replicates whose runs are all finished or lost. `pairs`: in any order, those of later replicates
    are ignored; or runs that form none, at which there is one look. Replicates count from 0. `own`: the design with
    margin and outcome of each comparison, where they differ.
    """
    tracks = {
        contrast: _Track(design=own[contrast] if own else design, data=pairs.get(contrast, ()))
        for contrast in design.comparisons
    }
    for replicates in _looks(design, complete):
        _take(design, replicates, list(tracks.values()))
    planned = complete >= max(design.looks, default=0)  # whether every planned look was taken
    over = planned and design.anytime_after is None
    return {
        contrast: Course(
            looks=tuple(track.looks), decision=track.decision, decided_at=track.decided_at, direction=track.direction,
            finished=(track.decision != "open" and (design.early_stop or planned)) or over,
        )
        for contrast, track in tracks.items()
    }


def retake(design: Design, look: Look, data: Data) -> Look:
    """Take `look` again with other runs, at the bounds that held there."""
    found = look_data(design, look.replicates, data)
    return take_look(design, look.replicates, found, round(design.alpha / look.alpha))


def upholds(course: Course, again: Look) -> bool:
    """Return whether the last look, taken again with other runs, still shows what was decided."""
    if course.decision == "equivalent":
        return again.equivalent
    return again.crossed and again.mean is not None and again.mean * course.direction > 0.0


def _looks(design: Design, complete: int) -> Iterator[int]:
    yield from (look for look in design.looks if look <= complete)
    if design.anytime_after is not None:
        yield from range(design.anytime_after + 1, complete + 1)


def _take(design: Design, replicates: int, tracks: list[_Track]) -> None:
    """Take one look at every comparison that still takes part."""
    n_open = sum(not track.passed_on for track in tracks)
    decided = [] if design.early_stop else [track for track in tracks if track.decision != "open"]
    for track in decided:
        data = look_data(track.design, replicates, track.data)
        track.looks.append(take_look(track.design, replicates, data, track.held))
    undecided = [
        (track, look_data(track.design, replicates, track.data)) for track in tracks if track.decision == "open"
    ]
    while True:
        seen = [(track, data, take_look(track.design, replicates, data, n_open)) for track, data in undecided]
        crossing = [(track, look) for track, _, look in seen if look.crossed]
        if not crossing:
            break
        for track, look in crossing:
            _decide(track, look, "crossed", n_open)
            track.passed_on = _beyond(look, track.design.margin)
        n_open -= sum(track.passed_on for track, _ in crossing)
        undecided = [(track, data) for track, data, look in seen if not look.crossed]
    for track, _, look in seen:
        if look.equivalent:
            _decide(track, look, "equivalent", n_open)
        elif look.futile:
            _decide(track, look, "futile", n_open)
        else:
            track.looks.append(look)


def _decide(track: _Track, look: Look, decision: LookDecision, n_open: int) -> None:
    track.looks.append(look)
    track.decision, track.decided_at, track.held = decision, look.replicates, n_open
    if decision == "crossed" and look.mean:
        track.direction = 1 if look.mean > 0.0 else -1


def _beyond(look: Look, margin: float) -> bool:
    """Return whether the repeated interval lies outside of +-margin."""
    return (look.low is not None and look.low >= margin) or (look.high is not None and look.high <= -margin)


