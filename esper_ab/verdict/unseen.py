"""What a claim could not have seen: a rare collapse of one group's runs. Pure.

No test of a mean shows what struck none of its runs. So a claim is made again with one further pair in which a run that
it leans on has the worst outcome that was seen in either group, and the other one the mean of its group.
"""

from __future__ import annotations

import math

import msgspec

from esper_ab.design.design import Design
from esper_ab.stats.pair import Data, Pair, Samples, before, outcomes
from esper_ab.verdict.looks import Course, retake, upholds

_MISSED = 0.05  # chance that a collapse which strikes each run at `Unseen.rate` strikes none of them


class Unseen(msgspec.Struct, frozen=True, kw_only=True):
    """A collapse that would have gone unseen."""

    rate: float  # share of a group's runs: at a larger one, some run would have shown it with a chance of 95 %
    worst: float  # the outcome that a collapsed run is given
    survives: bool  # the claim is still made with one further pair, or run, of this kind


def unseen(design: Design, data: Data, course: Course) -> Unseen | None:
    """Take the last look again with one collapsed run more; None without a claim. `data`: no fewer than the look's."""
    if course.standing not in ("crossed", "equivalent"):
        return None
    look = course.looks[-1]
    used = before(data, look.replicates)
    worst = design.outcome.worst([value for side in outcomes(used) for value in side])
    ahead = course.direction * design.outcome.sign
    of_a = (True, False) if not ahead else (ahead > 0.0,)
    survives = all(upholds(course, retake(design, look, _collapsed(used, worst, of_a=one))) for one in of_a)
    return Unseen(rate=1.0 - _MISSED ** (1.0 / len(used)), worst=worst, survives=survives)


def _collapsed(used: tuple[Pair, ...] | Samples, worst: float, *, of_a: bool) -> Data:
    """Add a further pair: the worst outcome for one group, the other group's mean outcome for the other.

    Where runs form no pairs it is a further run of the first.
    """
    if isinstance(used, Samples):
        return Samples(a=(*used.a, worst), b=used.b) if of_a else Samples(a=used.a, b=(*used.b, worst))
    mean = math.fsum(pair.b if of_a else pair.a for pair in used) / len(used)
    return *used, msgspec.structs.replace(used[0], a=worst if of_a else mean, b=mean if of_a else worst)
