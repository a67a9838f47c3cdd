"""One group against another: every statistic of their pairs, the verdict and the sentence that says it.

Composes the other files of this package; computes nothing itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from scipy import stats

from esper_ab.design.design import EXTENSION_STRICTNESS
from esper_ab.design.pairs_needed import PairsNeeded, PBound, pairs_needed, smallest_resolvable
from esper_ab.stats.adjusted_difference import AdjustedDifference, adjusted_difference
from esper_ab.stats.anytime_t import anytime_interval
from esper_ab.stats.bootstrap import improvement_interval, iqm_difference
from esper_ab.stats.equivalence import equivalence
from esper_ab.stats.hedges_g import hedges_g
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_PAIRS
from esper_ab.stats.mann_whitney import mann_whitney
from esper_ab.stats.pair import Pair
from esper_ab.stats.pair_correlation import pair_correlation
from esper_ab.stats.paired_difference import PairedDifference, paired_difference
from esper_ab.stats.probability_of_improvement import probability_of_improvement
from esper_ab.stats.sign_flip import sign_flip
from esper_ab.stats.signed_rank import SignedRank, hodges_lehmann_interval, signed_rank
from esper_ab.verdict.decision import Grounds, Verdict, decide, decided
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.headline import headline
from esper_ab.verdict.imputation import imputed
from esper_ab.verdict.looks import Course
from esper_ab.verdict.question import Lost, Question
from esper_ab.verdict.sentences import caveats, level, losses_cap, rule_sentence, sentence


class Comparison(Evidence, frozen=True, kw_only=True):
    """The evidence on a - b and what may be said of it."""

    headline: str
    sentence: str
    rule: str
    caveats: tuple[str, ...]


def compare(
    question: Question,
    pairs: Sequence[Pair],
    course: Course,
    *,
    same_records: bool,
    lost: Lost,
    findings: Sequence[Finding],
) -> Comparison:
    """`pairs`: the complete ones, in any order; `course`: of this comparison, as `follow` gives it, the only place
    where it is decided; `same_records`: the digests of both runs agree in every pair; `findings`: of the whole audit.
    """
    ordered = tuple(sorted(pairs, key=lambda pair: pair.replicate))
    touching = tuple(finding for finding in findings if finding.touches(question.a, question.b))
    evidence = _judged(_numbers(question, ordered, course), same_records, lost, touching)
    known = {name: getattr(evidence, name) for name in Evidence.__struct_fields__}
    said, rule = sentence(evidence), rule_sentence(question.design)
    return Comparison(**known, headline=headline(evidence), sentence=said, rule=rule, caveats=caveats(evidence))


def _numbers(question: Question, pairs: tuple[Pair, ...], course: Course) -> Evidence:
    """All that follows from the pairs and the looks; losses and audit still to be weighed."""
    last = course.looks[-1] if course.looks else None
    used = pairs if last is None else tuple(pair for pair in pairs if pair.replicate < last.replicates)
    a, b = [pair.a for pair in used], [pair.b for pair in used]
    design = question.design
    sides = [(pair.position_a, pair.position_b) for pair in used]
    effect = adjusted_difference(a, b, sides, design.positions if design.adjusted else 1)
    plain = paired_difference(a, b, 1.0 - (last.alpha if last else question.alpha)) if used else None
    rank = signed_rank(a, b) if used and design.test == "rank" else None
    low, high = _interval(question, course, effect, used)
    several = len(used) > 1 and a != b
    bound = last.equivalence_p if last else None
    # Under the rank test equivalence is read off its own interval; the p of two t-tests would be another test's.
    tost = equivalence(effect, design.margin, bound) if effect and bound and several and design.test == "t" else None
    return Evidence(
        question=question,
        course=course,
        pairs=pairs,
        used=len(used),
        same_records=False,
        estimate=_estimate(course, effect, plain, rank),
        low=low,
        high=high,
        level=level(question, course),
        effect=effect,
        plain=plain,
        rank=rank or (signed_rank(a, b) if several else None),
        sign_flip=sign_flip(a, b) if several else None,
        mann_whitney=mann_whitney(a, b) if several else None,
        improvement=probability_of_improvement(a, b) if len(used) > 1 else None,
        improvement_interval=improvement_interval(a, b, np.random.default_rng(question.rng_seed)) if several else None,
        hedges_g=hedges_g(a, b) if several else None,
        correlation=pair_correlation(a, b) if several else None,
        iqm=iqm_difference(a, b, np.random.default_rng(question.rng_seed)) if several else None,
        equivalence=tost,
        pairs_needed=_needed(question, course, effect, plain) if several else None,
        pairs_anew=_needed_anew(question, course, effect, plain) if several else None,
        most_pairs=None,
        smallest_resolvable=None,
        lost=Lost(),
        imputed=None,
        findings=(),
        capped_by=(),
        unaudited=Verdict.INCONCLUSIVE,
        verdict=Verdict.INCONCLUSIVE,
    )


def _judged(evidence: Evidence, same_records: bool, lost: Lost, findings: tuple[Finding, ...]) -> Evidence:
    """The evidence with losses and audit weighed, and the verdict."""
    question, course = evidence.question, evidence.course
    again = imputed(question.design, evidence.pairs, course, lost)
    caps = [finding.sentence for finding in findings if finding.weight == "caps"]
    if again is not None and not again.survives:
        caps.append(losses_cap(question, again))
    most = None if question.open_ended else max(len(evidence.pairs), question.planned - len(lost.replicates))
    weighed = msgspec.structs.replace(
        evidence,
        same_records=same_records,
        most_pairs=most,
        smallest_resolvable=_smallest(evidence, most),
        lost=lost,
        imputed=again,
        findings=findings,
    )
    # Equal endpoints of differing records are what a coarse or saturated outcome gives: they show no equality.
    equal = bool(evidence.pairs) and all(pair.a == pair.b for pair in evidence.pairs)
    grounds = Grounds(
        pairs=len(evidence.pairs),
        blocked=any(finding.weight == "blocks" for finding in findings),
        identical=equal and same_records,
        decision=course.standing,
        direction=course.direction,
        below_margin=_below_margin(weighed),
        capped=False,
    )
    unaudited = decided(grounds)
    if unaudited is Verdict.EQUIVALENT:
        caps += weighed.floored
    below = grounds.below_margin and not weighed.floored
    verdict = decide(msgspec.structs.replace(grounds, capped=bool(caps), below_margin=below))
    if verdict is Verdict.EQUIVALENT:
        weighed = _with_its_interval(weighed)
    return msgspec.structs.replace(weighed, capped_by=tuple(caps), unaudited=unaudited, verdict=verdict)


def _below_margin(evidence: Evidence) -> bool:
    """Whether all agree that the difference is smaller than the margin: its interval, its mean, and pairs enough."""
    margin, low, high, plain = evidence.question.design.margin, evidence.low, evidence.high, evidence.plain
    if low is None or high is None or plain is None or evidence.used < LEAST_EQUIVALENCE_PAIRS:
        return False
    by_ranks = evidence.question.design.test == "rank"  # the mean is then beside what the interval is of
    return -margin < low and high < margin and (not by_ranks or abs(plain.mean) < margin)


def _with_its_interval(evidence: Evidence) -> Evidence:
    """An equivalence with the interval that it rests on."""
    look = evidence.course.looks[-1]
    said = level(evidence.question, evidence.course, of_equivalence=True)
    return msgspec.structs.replace(evidence, low=look.equivalence_low, high=look.equivalence_high, level=said)


def _estimate(
    course: Course, effect: AdjustedDifference | None, plain: PairedDifference | None, rank: SignedRank | None
) -> float | None:
    if course.looks and course.looks[-1].mean is not None:
        return course.looks[-1].mean
    if rank is not None:
        return rank.estimate
    if effect is not None:
        return effect.mean
    return plain.mean if plain is not None else None


def _interval(
    question: Question, course: Course, effect: AdjustedDifference | None, used: Sequence[Pair]
) -> tuple[float | None, float | None]:
    """The one of the last look; where no look with a bound was taken, one that no boundary has corrected."""
    last = course.looks[-1] if course.looks else None
    if last is not None and (last.bound_p is not None or last.bound_e is not None):
        return last.low, last.high
    if question.design.test == "rank":
        found = hodges_lehmann_interval([pair.a - pair.b for pair in used], question.alpha)
    else:
        found = effect.interval(question.alpha) if effect is not None else None
    return found or (None, None)


def _p_bound(question: Question, course: Course) -> PBound:
    """What p decides at the end of the plan; under the anytime-valid rule it depends on the number of pairs."""
    design = question.design
    held = _held(question, course)
    if design.anytime_after is not None:
        evidence = design.evidence * design.alpha / held
        return lambda pairs: _anytime_p(pairs, evidence)
    return _planned_bound(question, course)


def _planned_bound(question: Question, course: Course) -> float:
    """The p that decides at the last planned look."""
    held = _held(question, course)
    return next((one.nominal_p[-1] for one in question.design.boundaries if math.isclose(one.alpha, held)), held)


def _held(question: Question, course: Course) -> float:
    """The share of alpha that the comparison holds."""
    return course.looks[-1].alpha if course.looks else question.alpha


def _anytime_p(pairs: int, evidence: float) -> float:
    """The p of the t at which the e-value of `pairs` pairs of a balanced plan reaches `evidence`; 0.0: none does."""
    found = anytime_interval(0.0, 1.0, pairs - 1, float(pairs), evidence)
    return 0.0 if found is None else 2.0 * float(stats.t.sf(found[1], pairs - 1))


def _spread(
    question: Question, effect: AdjustedDifference | None, plain: PairedDifference | None
) -> tuple[float, int, int] | None:
    """SD of a pair of a balanced plan, its degrees of freedom, columns of the design; None: nothing varies."""
    if question.design.test == "rank":
        return (plain.sd, plain.df, 1) if plain is not None and plain.se is not None and plain.sd else None
    if effect is None or effect.se is None:
        return None
    return effect.se * math.sqrt(effect.pairs), effect.df, effect.pairs - effect.df


def _needed(
    question: Question, course: Course, effect: AdjustedDifference | None, plain: PairedDifference | None
) -> PairsNeeded | None:
    spread = _spread(question, effect, plain)
    if spread is None:
        return None
    sd, df, columns = spread
    margin, bound = question.design.margin, _p_bound(question, course)
    needed = pairs_needed(sd, df, margin, bound, columns)
    design = question.design
    if callable(bound) or needed.pairs <= question.planned or design.test == "rank" or not design.boundaries:
        return needed
    # More pairs than planned come at the price of an extension; the rank test has none, so a longer plan is meant.
    evidence = EXTENSION_STRICTNESS / _held(question, course)
    return pairs_needed(sd, df, margin, lambda pairs: _anytime_p(pairs, evidence), columns)


def _needed_anew(
    question: Question, course: Course, effect: AdjustedDifference | None, plain: PairedDifference | None
) -> PairsNeeded | None:
    """In a new plan, at about the last bound of this one; only of a plan with looks, whose t-test can be extended."""
    spread, design = _spread(question, effect, plain), question.design
    if spread is None or design.test == "rank" or not design.boundaries:
        return None
    return pairs_needed(spread[0], spread[1], design.margin, _planned_bound(question, course), spread[2])


def _smallest(evidence: Evidence, most: int | None) -> float | None:
    spread = _spread(evidence.question, evidence.effect, evidence.plain)
    if spread is None or most is None or most < LEAST_PAIRS:
        return None
    bound = _p_bound(evidence.question, evidence.course)
    return smallest_resolvable(spread[0], most, bound(most) if callable(bound) else bound, spread[2])
