"""How many pairs a clear answer to a comparison takes, from the spread of its pairs and the bound of its rule. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
from msgspec import UnsetType

from esper_ab.design import any_shape
from esper_ab.design.any_shape import required_evidence, seeds_for_any_shape
from esper_ab.design.design import EXTENSION_STRICTNESS
from esper_ab.design.pairs_needed import SD_LIMITS, PairsNeeded, PBound, pairs_needed, smallest_resolvable
from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.anytime_t import anytime_interval
from esper_ab.stats.distributions import t_sf
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_OPEN_ENDED_PAIRS, LEAST_PAIRS
from esper_ab.stats.sd_limits import sd_limits
from esper_ab.verdict.effect import Effect
from esper_ab.verdict.looks import ComparisonProgress
from esper_ab.verdict.question import Question


@dataclass(frozen=True, kw_only=True)
class ObservedSpread:
    """The spread of pair differences in a balanced plan."""

    sd: float
    df: int  # of `sd`
    planned_columns: int  # pairs less degrees of freedom of a planned look; below 1 if variances are moderated
    columns: int  # of the design: pairs less degrees of freedom of a t with the comparison's own variance


def spread(effect: Effect | None) -> ObservedSpread | None:
    """Return the spread; None if the effect does not come from a paired t-test, or if it has no standard error."""
    if not isinstance(effect, AdjustedDifference) or effect.se is None or effect.name:
        return None
    df = int(effect.df)
    prior_df = 0 if isinstance(effect.prior, UnsetType) else effect.prior.df
    return ObservedSpread(
        sd=effect.se * math.sqrt(effect.pairs),
        df=df,
        planned_columns=effect.pairs - df,
        columns=effect.pairs - df + prior_df,
    )


def extendable(question: Question, progress: ComparisonProgress) -> bool:
    """True if the comparison is open and its runs have records, so that `esper-ab resume --seeds` could decide it."""
    return question.recorded and progress.decision == "open"


def needed_here(question: Question, progress: ComparisonProgress, observed_spread: ObservedSpread) -> PairsNeeded:
    """Return how many pairs the margin needs in this plan or, if it is too small, in an extension, where possible."""
    design = question.design
    bound = _bound(question, progress)
    extension_need = _enlarged_need(question, progress, _raised_need(question, observed_spread, bound), observed_spread)
    if callable(bound) or extension_need.pairs <= question.planned:
        return extension_need
    if not design.boundaries or not extendable(question, progress):
        return extension_need  # no extension is possible: the pairs of a longer plan
    evidence = EXTENSION_STRICTNESS / _share_of_alpha(question, progress)
    extension_need = _raised_need(question, observed_spread, lambda pairs: _anytime_p(pairs, evidence))
    return _enlarged_need(question, progress, extension_need, observed_spread)


def needed_anew(
    question: Question, progress: ComparisonProgress, observed_spread: ObservedSpread
) -> PairsNeeded | None:
    """Return how many pairs a new plan with about the same last bound as this plan needs to detect the margin.

    Returns None unless this plan has looks.
    """
    if not question.design.boundaries:
        return None
    need = _raised_need(question, observed_spread, _planned_bound(question, progress))
    return _enlarged_need(question, progress, need, observed_spread)


def _enlarged_need(
    question: Question, progress: ComparisonProgress, need: PairsNeeded, observed_spread: ObservedSpread
) -> PairsNeeded:
    """Return the need or, if claims must hold for any shape, the larger one of their evidence."""
    design = question.design
    if not design.any_shape:
        return need
    share = question.alpha  # of a one-sided claim, of which the evidence needs half as much
    if design.non_inferiority is None:
        share = _share_of_alpha(question, progress)
    sds = (observed_spread.sd, *sd_limits(observed_spread.sd, observed_spread.df, SD_LIMITS))
    pairs, low, high = (seeds_for_any_shape(design, share, sd) for sd in sds)
    return msgspec.structs.replace(
        need, pairs=max(need.pairs, pairs), low=max(need.low, low), high=max(need.high, high)
    )


def _raised_need(question: Question, observed_spread: ObservedSpread, bound: PBound) -> PairsNeeded:
    """Return the pairs that the margin needs, which are at least those that the plan's claim needs.

    Where nothing differs, a group is shown to be not worse exactly as often as a true difference of the margin is
    found by a two-sided test with twice the bound. Only planned looks, whose `bound` is a number, moderate variances.
    """
    columns = observed_spread.columns if callable(bound) else observed_spread.planned_columns
    need = pairs_needed(observed_spread.sd, observed_spread.df, question.design.margin, bound, columns)
    least_pairs = _least_pairs(question)
    return msgspec.structs.replace(
        need,
        pairs=max(least_pairs, need.pairs),
        low=max(least_pairs, need.low),
        high=max(least_pairs, need.high),
    )


def _least_pairs(question: Question) -> int:
    """Return the fewest pairs with which the claim of the plan can be made."""
    if question.design.non_inferiority is None:
        return LEAST_PAIRS
    return LEAST_OPEN_ENDED_PAIRS if question.open_ended else LEAST_EQUIVALENCE_PAIRS


def smallest_difference(
    question: Question, progress: ComparisonProgress, observed_spread: ObservedSpread, most_pairs: int
) -> float | None:
    """Return the smallest difference that `most_pairs` pairs detect with 80 % power; None if there is no such
    difference.
    """
    if most_pairs < _least_pairs(question):
        return None
    bound = _bound(question, progress)
    if callable(bound):
        smallest_by_t = smallest_resolvable(
            observed_spread.sd, most_pairs, bound(most_pairs), observed_spread.columns, signed=False
        )
    else:
        smallest_by_t = smallest_resolvable(
            observed_spread.sd, most_pairs, bound, observed_spread.planned_columns, signed=True
        )
    if smallest_by_t is None or not question.design.any_shape:
        return smallest_by_t
    evidence = required_evidence(_share_of_alpha(question, progress))
    size = question.design.largest_difference()
    smallest_for_any_shape = any_shape.smallest_difference(observed_spread.sd, most_pairs, size, evidence)
    return None if smallest_for_any_shape is None else max(smallest_by_t, smallest_for_any_shape)


def _bound(question: Question, progress: ComparisonProgress) -> PBound:
    """Return the bound on p at the end of the plan; under the anytime-valid rule it depends on the number of pairs."""
    design = question.design
    if design.anytime_after is None:
        return _planned_bound(question, progress)
    evidence = design.evidence * design.alpha / _share_of_alpha(question, progress)
    return lambda pairs: _anytime_p(pairs, evidence)


def _planned_bound(question: Question, progress: ComparisonProgress) -> float:
    """Return the bound on p at the last planned look."""
    if question.design.non_inferiority is not None and question.design.looks:
        return 2.0 * question.design.non_inferiority.nominal_p[-1]
    share = _share_of_alpha(question, progress)
    for boundary in question.design.boundaries:
        if math.isclose(boundary.alpha, share):
            return boundary.nominal_p[-1]
    return share


def _share_of_alpha(question: Question, progress: ComparisonProgress) -> float:
    """Return the share of alpha that the comparison holds; twice its first share if its claim is one-sided."""
    if question.design.non_inferiority is not None:
        return 2.0 * question.alpha
    if progress.last is None:
        return question.alpha
    return progress.last.alpha


def _anytime_p(pairs: int, evidence: float) -> float:
    """Return the p-value of the t for which `pairs` pairs in a balanced plan have the e-value `evidence`.

    0.0 if none.
    """
    interval = anytime_interval(0.0, 1.0, pairs - 1, float(pairs), evidence)
    if interval is None:
        return 0.0
    _, high = interval
    return 2.0 * float(t_sf(high, pairs - 1))
