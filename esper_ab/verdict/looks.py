"""The looks of an experiment, interim and last: which comparisons crossed their boundary, and when. Pure.

Group-sequential with alpha passed on: a comparison that crosses and is shown to be larger than the margin hands its
share to those still open, which are tested again at the same look (after Maurer & Bretz 2013). Of a smaller one it
could still be claimed that it lies within the margin, so its share is not free. Everything about the margin is tested
at the share that a comparison held first. So all claims of all comparisons together err with probability alpha.
After the last planned look of an extended plan, and in an open-ended one, every replicate is followed by a look under
the anytime-valid t.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from esper_ab.design.design import Contrast, Design
from esper_ab.stats.adjusted_difference import AdjustedDifference, adjusted_difference
from esper_ab.stats.anytime_t import anytime_interval, log_evidence
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.pair import Pair, degenerate
from esper_ab.stats.signed_rank import hodges_lehmann_interval, signed_rank

LookDecision = Literal["open", "crossed", "equivalent"]
_LARGEST_LOG = 700.0  # exp() of more is no float; an e-value beyond it says no more
Interval = tuple[float, float] | None


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison at one look. What the pairs cannot give is None; differences in points."""

    replicates: int
    pairs: int  # of these replicates, lost ones not among them
    alpha: float  # that the comparison holds here
    bound_p: float | None  # nominal two-sided p; None at a look of the anytime-valid rule, or without any boundary
    bound_e: float | None  # e-value asked for; None at a planned look
    p: float | None  # of the design's test; None at a look of the anytime-valid rule
    e: float | None
    mean: float | None  # Hodges-Lehmann estimate when the test is "rank"
    low: float | None  # repeated interval: the differences that this look's bound does not reject
    high: float | None
    simultaneous_low: float | None  # interval at the share held first: those of all comparisons hold at once
    simultaneous_high: float | None
    crossed: bool
    small: bool  # pairs enough, and the simultaneous interval and the mean lie within the margin
    equivalence_p: float | None  # asked of each one-sided test at the margin: the first share's bound_p; None likewise
    equivalence_low: float | None  # interval at twice equivalence_p, or at half the e-value of the first share
    equivalence_high: float | None
    equivalent: bool  # the bound was not reached, and that interval lies inside +-margin


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The looks taken so far at one comparison and what they decided. A decision is never taken back."""

    looks: tuple[Look, ...]  # up to the stop when the design stops early, else all
    decision: LookDecision
    decided_at: int | None  # replicates
    direction: int  # +1: a is better, -1: b is better, 0: not crossed
    finished: bool  # decided, or every look of the design taken

    @property
    def standing(self) -> LookDecision:
        """The decision where the last look shows it, too, as after an early stop; else "open".

        What is said rests on the numbers of the last look, so that no claim stands beside an estimate against it.
        """
        if self.decision == "open":
            return "open"
        last = self.looks[-1]
        if self.decision == "equivalent":
            return "equivalent" if last.equivalent else "open"
        return "crossed" if last.crossed and last.mean is not None and last.mean * self.direction > 0.0 else "open"


@dataclass
class _Track:
    """State of one comparison between two looks."""

    pairs: list[Pair]  # by replicate
    looks: list[Look] = field(default_factory=list)
    decision: LookDecision = "open"
    decided_at: int | None = None
    direction: int = 0
    held: int = 0  # comparisons that shared alpha when it was decided: its share stays what it was
    passed_on: bool = False  # its share: it crossed, and is larger than the margin


@dataclass(frozen=True)
class _Evidence:
    """Estimate and test of the pairs of one look, before any bound."""

    pairs: int
    effect: AdjustedDifference | None
    differences: tuple[float, ...]
    p: float | None
    mean: float | None  # what the test estimates
    average: float | None  # what is to be estimated; differs from `mean` under the rank test only
    of_average: AdjustedDifference | None  # its t, which the rank test asks as well about what is small


def follow(design: Design, pairs: Mapping[Contrast, Sequence[Pair]], complete: int) -> dict[Contrast, Course]:
    """Return the course of every comparison of the design after its first `complete` replicates.

    `complete`: leading replicates whose runs are all finished or lost. `pairs`: in any order; those of later replicates
    are ignored. Replicates count from 0.
    """
    tracks = {
        contrast: _Track(pairs=sorted(pairs.get(contrast, ()), key=lambda pair: pair.replicate))
        for contrast in design.comparisons
    }
    for replicates in _looks(design, complete):
        _take(design, replicates, list(tracks.values()))
    over = design.anytime_after is None and complete >= max(design.looks, default=0)
    return {
        contrast: Course(
            looks=tuple(track.looks), decision=track.decision, decided_at=track.decided_at, direction=track.direction,
            finished=over or track.decision != "open",
        )
        for contrast, track in tracks.items()
    }


def retake(design: Design, look: Look, pairs: Sequence[Pair]) -> Look:
    """Take `look` again with other pairs, at the bounds that held there."""
    evidence = _evidence(design, look.replicates, pairs)
    return _look(design, look.replicates, evidence, round(design.alpha / look.alpha))


def _looks(design: Design, complete: int) -> Iterator[int]:
    yield from (look for look in design.looks if look <= complete)
    if design.anytime_after is not None:
        yield from range(design.anytime_after + 1, complete + 1)


def _take(design: Design, replicates: int, tracks: list[_Track]) -> None:
    """Take one look at every comparison that still takes part."""
    n_open = sum(not track.passed_on for track in tracks)
    decided = [] if design.early_stop else [track for track in tracks if track.decision != "open"]
    for track in decided:
        track.looks.append(_look(design, replicates, _evidence(design, replicates, track.pairs), track.held))
    undecided = [(track, _evidence(design, replicates, track.pairs)) for track in tracks if track.decision == "open"]
    while True:
        seen = [(track, evidence, _look(design, replicates, evidence, n_open)) for track, evidence in undecided]
        crossing = [(track, look) for track, _, look in seen if look.crossed]
        if not crossing:
            break
        for track, look in crossing:
            _decide(track, look, "crossed", n_open)
            track.passed_on = _beyond(look, design.margin)
        n_open -= sum(track.passed_on for track, _ in crossing)
        undecided = [(track, evidence) for track, evidence, look in seen if not look.crossed]
    for track, _, look in seen:
        if look.equivalent:
            _decide(track, look, "equivalent", n_open)
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


def _evidence(design: Design, replicates: int, pairs: Sequence[Pair]) -> _Evidence:
    used = [pair for pair in pairs if pair.replicate < replicates]
    a, b = [pair.a for pair in used], [pair.b for pair in used]
    sides = [(pair.position_a, pair.position_b) for pair in used]
    d = tuple(x - y for x, y in zip(a, b, strict=True))
    if design.test == "rank" and used and not _anytime(design, replicates):
        rank = signed_rank(a, b)
        p = None if degenerate(d) or not rank.n else rank.p
        average = math.fsum(d) / len(d)
        return _Evidence(
            pairs=len(used), effect=None, differences=d, p=p, mean=rank.estimate, average=average,
            of_average=adjusted_difference(a, b, sides, 1),
        )  # fmt: skip
    effect = adjusted_difference(a, b, sides, design.positions if design.adjusted else 1)
    if effect is None:
        return _Evidence(
            pairs=len(used), effect=None, differences=d, p=None, mean=None, average=None, of_average=None
        )
    return _Evidence(
        pairs=len(used), effect=effect, differences=d, p=effect.p, mean=effect.mean, average=effect.mean,
        of_average=None,
    )  # fmt: skip


def _anytime(design: Design, replicates: int) -> bool:
    return design.anytime_after is not None and replicates > design.anytime_after


def _look(design: Design, replicates: int, evidence: _Evidence, n_open: int) -> Look:
    """Test the pairs against the bounds that hold while `n_open` comparisons share alpha."""
    if _anytime(design, replicates):
        return _anytime_look(design, replicates, evidence, n_open)
    bound = first = None
    if design.boundaries:
        at = design.looks.index(replicates)
        bound, first = (design.boundary(n).nominal_p[at] for n in (n_open, len(design.comparisons)))
    interval, simultaneous = (_interval(design, evidence, p) for p in (bound, first))
    equal = _interval(design, evidence, None if first is None else 2.0 * first)
    reached = evidence.p is not None and bound is not None and bound > 0.0 and evidence.p <= bound
    crossed = reached and _crosses(evidence, interval)
    return Look(
        replicates=replicates, pairs=evidence.pairs, alpha=design.alpha / n_open, bound_p=bound, bound_e=None,
        p=evidence.p, e=None, mean=evidence.mean, low=interval[0] if interval else None,
        high=interval[1] if interval else None, simultaneous_low=simultaneous[0] if simultaneous else None,
        simultaneous_high=simultaneous[1] if simultaneous else None, crossed=crossed,
        small=_small(evidence, simultaneous, design.margin, first), equivalence_p=first,
        equivalence_low=equal[0] if equal else None, equivalence_high=equal[1] if equal else None,
        equivalent=not reached and _small(evidence, equal, design.margin, None if first is None else 2.0 * first),
    )  # fmt: skip


def _interval(design: Design, evidence: _Evidence, p: float | None) -> Interval:
    """Return the differences that the design's test does not reject at two-sided `p`."""
    if not p or evidence.p is None:
        return None
    if design.test == "rank":
        return hodges_lehmann_interval(evidence.differences, p)
    return evidence.effect.interval(p) if evidence.effect else None


def _anytime_look(design: Design, replicates: int, evidence: _Evidence, n_open: int) -> Look:
    bound = design.evidence * n_open
    effect = evidence.effect
    log_e: float | None = None
    interval: Interval = None
    simultaneous: Interval = None
    equal: Interval = None
    if effect is not None and effect.t is not None and effect.se is not None:
        log_e = log_evidence(effect.t, effect.df, effect.information)
        interval = anytime_interval(effect.mean, effect.se, effect.df, effect.information, bound)
        first = design.evidence * len(design.comparisons)
        simultaneous = anytime_interval(effect.mean, effect.se, effect.df, effect.information, first)
        equal = anytime_interval(effect.mean, effect.se, effect.df, effect.information, first / 2.0)
    reached = log_e is not None and log_e >= math.log(bound)
    crossed = reached and _crosses(evidence, interval)
    return Look(
        replicates=replicates, pairs=evidence.pairs, alpha=design.alpha / n_open, bound_p=None, bound_e=bound, p=None,
        e=None if log_e is None else math.exp(min(log_e, _LARGEST_LOG)), mean=evidence.mean,
        low=interval[0] if interval else None, high=interval[1] if interval else None,
        simultaneous_low=simultaneous[0] if simultaneous else None,
        simultaneous_high=simultaneous[1] if simultaneous else None, crossed=crossed,
        small=_small(evidence, simultaneous, design.margin), equivalence_p=None,
        equivalence_low=equal[0] if equal else None, equivalence_high=equal[1] if equal else None,
        equivalent=not reached and _small(evidence, equal, design.margin),
    )  # fmt: skip


def _crosses(evidence: _Evidence, interval: Interval) -> bool:
    """Return whether a test that reached its bound may claim a difference: pairs, estimate, mean, interval agree.

    With ties a rank test can reject at an estimate of 0 or beside an interval that holds 0; and what most pairs show
    the mean may contradict.
    """
    if evidence.pairs < LEAST_PAIRS or not evidence.mean or evidence.average is None or interval is None:
        return False
    above = evidence.mean > 0.0
    return (interval[0] > 0.0 and evidence.average > 0.0) if above else (interval[1] < 0.0 and evidence.average < 0.0)


def _small(evidence: _Evidence, interval: Interval, margin: float, p: float | None = None) -> bool:
    """Return whether there are pairs enough, and the interval and the mean lie within the margin.

    Ranks hardly see rare collapses, in which all of a mean difference can lie: under the rank test the interval of the
    mean at two-sided `p` must lie there, too.
    """
    if evidence.pairs < LEAST_EQUIVALENCE_PAIRS or evidence.average is None or interval is None:
        return False
    if evidence.of_average is not None:
        also = evidence.of_average.interval(p) if p else None
        if also is None or not -margin < also[0] <= also[1] < margin:
            return False
    return -margin < interval[0] and interval[1] < margin and abs(evidence.average) < margin
