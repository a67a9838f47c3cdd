"""How many pairs a clear answer to a comparison takes, from the spread of its pairs and the bound of its rule. Pure."""

from __future__ import annotations

import math

from esper_ab.design.design import EXTENSION_STRICTNESS
from esper_ab.design.pairs_needed import PairsNeeded, PBound, pairs_needed, smallest_resolvable
from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.anytime_t import anytime_interval
from esper_ab.stats.distributions import t_sf
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.look import Effect
from esper_ab.verdict.looks import Course
from esper_ab.verdict.question import Question

Spread = tuple[float, int, int]  # SD of a pair of a balanced plan, its degrees of freedom, columns of the design


def spread(effect: Effect | None) -> Spread | None:
    """Return the SD of a pair of a balanced plan, its degrees of freedom, and the columns of the design.

    None where nothing varies, and of what is no t of pairs.
    """
    if not isinstance(effect, AdjustedDifference) or effect.se is None or effect.name:
        return None
    return effect.se * math.sqrt(effect.pairs), int(effect.df), effect.pairs - int(effect.df)


def extendable(question: Question, course: Course) -> bool:
    """Whether `esper-ab resume --seeds` could decide it: an open comparison, in an experiment of our own."""
    return question.recorded and course.decision == "open"


def needed_here(question: Question, course: Course, found: Spread) -> PairsNeeded:
    """Compute the pairs that the margin takes in this plan; beyond the planned ones at the price of an extension."""
    (sd, df, columns), design, bound = found, question.design, _bound(question, course)
    needed = pairs_needed(sd, df, design.margin, bound, columns)
    if callable(bound) or needed.pairs <= question.planned or not (design.boundaries and extendable(question, course)):
        return needed  # what cannot be extended takes a longer plan
    evidence = EXTENSION_STRICTNESS / _held(question, course)
    return pairs_needed(sd, df, design.margin, lambda pairs: _anytime_p(pairs, evidence), columns)


def needed_anew(question: Question, course: Course, found: Spread) -> PairsNeeded | None:
    """Compute the pairs that the margin takes in a new plan, at about the last bound of this one.

    None unless the plan has looks.
    """
    if not question.design.boundaries:
        return None
    sd, df, columns = found
    return pairs_needed(sd, df, question.design.margin, _planned_bound(question, course), columns)


def smallest_difference(question: Question, course: Course, found: Spread, most: int) -> float | None:
    """Return the difference that `most` pairs detect with 80 % power; None: they detect none."""
    if most < LEAST_PAIRS:
        return None
    bound = _bound(question, course)
    return smallest_resolvable(found[0], most, bound(most) if callable(bound) else bound, found[2])


def _bound(question: Question, course: Course) -> PBound:
    """Return the p that decides at the end of the plan; by the anytime-valid rule it depends on the pairs."""
    design = question.design
    if design.anytime_after is None:
        return _planned_bound(question, course)
    evidence = design.evidence * design.alpha / _held(question, course)
    return lambda pairs: _anytime_p(pairs, evidence)


def _planned_bound(question: Question, course: Course) -> float:
    """Return the p that decides at the last planned look."""
    held = _held(question, course)
    return next((one.nominal_p[-1] for one in question.design.boundaries if math.isclose(one.alpha, held)), held)


def _held(question: Question, course: Course) -> float:
    """Return the share of alpha that the comparison holds."""
    return course.looks[-1].alpha if course.looks else question.alpha


def _anytime_p(pairs: int, evidence: float) -> float:
    """Return the p of the t at which the e-value of `pairs` pairs of a balanced plan is `evidence`; 0.0: of none."""
    found = anytime_interval(0.0, 1.0, pairs - 1, float(pairs), evidence)
    return 0.0 if found is None else 2.0 * float(t_sf(found[1], pairs - 1))
