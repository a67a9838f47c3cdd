"""One group against another: the numbers of their pairs, the verdict, and the sentences that say it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from esper_ab.stats.equivalence import equivalence
from esper_ab.stats.pair import Data, Pair, Samples, before, outcomes
from esper_ab.stats.paired_difference import PairedDifference, paired_difference
from esper_ab.stats.proportions import Proportions
from esper_ab.stats.signed_rank import signed_rank
from esper_ab.verdict import caveats, headline, sentences
from esper_ab.verdict.decision import Grounds, decide, decided
from esper_ab.verdict.descriptive import describe
from esper_ab.verdict.evidence import Assessment, DifferenceInterval, Evidence, Kind, Level, Numbers
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.imputation import imputed, limits_with_losses
from esper_ab.verdict.look import Effect, effect_of
from esper_ab.verdict.looks import Course
from esper_ab.verdict.question import Lost, Question
from esper_ab.verdict.sample_size import needed_anew, needed_here, smallest_difference, spread
from esper_ab.verdict.sentences_on_losses import losses_cap
from esper_ab.verdict.unseen import unseen
from esper_ab.verdict.word import CLAIMS, Verdict


@dataclass(frozen=True, kw_only=True)
class Comparison(Evidence):
    """The evidence on a - b and what may be said of it."""

    @property
    def headline(self) -> str:
        """The answer in one plain sentence."""
        return headline.headline(self)

    @property
    def sentence(self) -> str:
        """The verdict and the numbers that it rests on."""
        return sentences.sentence(self)

    @property
    def rule(self) -> str:
        """The rule that was declared before the first run."""
        return sentences.rule_sentence(self.question.design)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a careful reader must know besides, one sentence or two each."""
        return caveats.caveats(self)


def compare(
    question: Question, data: Data, course: Course, *, same_records: bool, lost: Lost,
    findings: Sequence[Finding],
) -> Comparison:  # fmt: skip
    """Compute the numbers of the complete pairs, in any order, or of runs that form none, and judge them.

    `course`: of this comparison, as `follow` gives it, which alone decides it; `same_records`: whether the digests of
    both runs agree in every pair; `findings`: of the whole audit.
    """
    numbers = _numbers(question, before(data, sys.maxsize), course)
    touching = tuple(finding for finding in findings if finding.touches(question.a, question.b))
    return Comparison(**vars(numbers), **vars(_judge(numbers, same_records, lost, touching)))


def _numbers(question: Question, data: tuple[Pair, ...] | Samples, course: Course) -> Numbers:
    """Compute all that follows from the runs and the looks."""
    design, last = question.design, course.last
    used = data if last is None else before(data, last.replicates)
    effect, (a, b), paired = effect_of(design, used), outcomes(used), not isinstance(used, Samples)
    t, several = None if isinstance(effect, Proportions) else effect, len(used) > 1 and a != b
    level = 1.0 - (last.alpha if last else question.alpha)
    plain = paired_difference(a, b, level) if used and paired and t is effect else None
    bound = last.equivalence_p if last else None
    tost = equivalence(t, design.margin, bound) if t and bound and several else None
    found = spread(effect) if several else None
    return Numbers(
        question=question, course=course, pairs=() if isinstance(data, Samples) else data,
        samples=data if isinstance(data, Samples) else None, used=len(used), effect=effect, plain=plain,
        rank=signed_rank(a, b) if several and paired else None, estimate=_estimate(course, effect, plain),
        at_look=_interval(question, course, effect), simultaneous=_simultaneous(question, course),
        futility=_futility(course), equivalence=tost,
        descriptive=describe(
            a, b, question.rng_seed, lower=question.sign < 0.0, paired=paired, binary=t is not effect
        ),
        pairs_needed=needed_here(question, course, found) if found else None,
        pairs_anew=needed_anew(question, course, found) if found else None,
    )  # fmt: skip


def _judge(numbers: Numbers, same_records: bool, lost: Lost, findings: tuple[Finding, ...]) -> Assessment:
    """Weigh losses and audit against the numbers."""
    question, course, pairs = numbers.question, numbers.course, numbers.pairs
    again = imputed(question.design, numbers.data, course, lost)
    caps = [finding.sentence for finding in findings if finding.weight == "caps"]
    baselines = [finding.sentence for finding in findings if finding.weight == "caps equivalence"]
    if again is not None and not again.survives:
        caps.append(losses_cap(question, again, small=course.decision == "equivalent"))
    # Equal outcomes of differing records are what a coarse or saturated outcome gives: they show no equality.
    equal = bool(pairs) and all(pair.a == pair.b for pair in pairs)
    grounds = Grounds(
        pairs=len(numbers.data), blocked=any(finding.weight == "blocks" for finding in findings),
        identical=equal and same_records, decision=course.standing, direction=course.direction * question.sign,
        below_margin=numbers.last_look is not None and numbers.last_look.small, capped=False,
    )  # fmt: skip
    unaudited = decided(grounds)
    if unaudited is Verdict.EQUIVALENT:
        caps += baselines
    below = grounds.below_margin and not baselines and (again is None or again.small)
    verdict = decide(msgspec.structs.replace(grounds, capped=bool(caps), below_margin=below))
    on_equivalence = verdict is Verdict.EQUIVALENT
    low, high, level = _equivalence_interval(numbers) if on_equivalence else numbers.at_look
    most = None if question.open_ended else max(len(numbers.data), question.planned - len(lost.replicates))
    found = spread(numbers.effect)
    smallest = smallest_difference(question, course, found, most) if found and most is not None else None
    undecided = verdict is Verdict.INCONCLUSIVE and not caps and course.finished
    return Assessment(
        same_records=same_records, low=low, high=high, level=level, most_pairs=most, smallest_resolvable=smallest,
        lost=lost, imputed=again, findings=findings, capped_by=tuple(caps),
        limits_with_losses=limits_with_losses(question.design, numbers.data, course, lost),
        unseen=None if verdict not in CLAIMS or numbers.proportions else unseen(question.design, numbers.data, course),
        inconclusive=_kind(numbers, low, high, smallest) if undecided else None, unaudited=unaudited,
        verdict=verdict,
    )  # fmt: skip


def _kind(numbers: Numbers, low: float | None, high: float | None, smallest: float | None) -> Kind | None:
    """Return which kind of INCONCLUSIVE it is: stopped, or whether the margin was within reach; None: not known."""
    if numbers.course.standing == "futile":
        return "futile"
    margin = numbers.design.margin
    within = low is not None and high is not None and max(-low, high) < margin
    reached = low is not None and smallest is not None and smallest <= margin
    beyond: Kind | None = "uninformative" if numbers.pairs_needed is not None else None
    return "bounded" if within or reached else beyond


def _estimate(
    course: Course, effect: Effect | None, plain: PairedDifference | None
) -> float | None:
    if course.last is not None and course.last.mean is not None:
        return course.last.mean
    if effect is not None:
        return effect.mean
    return plain.mean if plain is not None else None


def _interval(question: Question, course: Course, effect: Effect | None) -> DifferenceInterval:
    """Return the interval of the last look; where no look with a bound was taken, one that no boundary corrects."""
    design, last = question.design, course.last
    if last is not None and (last.bound_p is not None or last.bound_e is not None):
        return last.low, last.high, _level(question, course, last.alpha)
    found = effect.interval(question.alpha) if effect is not None else None
    early = not course.finished and (len(design.looks) > 1 or question.open_ended)
    return *(found or (None, None)), Level(confidence=1.0 - question.alpha, early=early)


def _simultaneous(question: Question, course: Course) -> DifferenceInterval:
    """Return the interval of the last look at the share of alpha that was held first."""
    level = Level(confidence=1.0 - question.design.alpha, kind="simultaneous ")
    if course.last is None:
        return None, None, level
    return course.last.simultaneous_low, course.last.simultaneous_high, level


def _futility(course: Course) -> DifferenceInterval:
    """Return the interval of the two one-sided tests at the margin by which the last look may stop for futility."""
    last = course.last
    if last is None or last.futility_p is None:
        return None, None, Level(confidence=1.0, kind="futility ")
    return last.futility_low, last.futility_high, Level(confidence=1.0 - 2.0 * last.futility_p, kind="futility ")


def _equivalence_interval(numbers: Numbers) -> DifferenceInterval:
    """Return the interval that EQUIVALENT rests on, at the share of alpha that was held first."""
    last, alpha = numbers.course.looks[-1], numbers.question.alpha
    level = _level(numbers.question, numbers.course, alpha if numbers.proportions else 2.0 * alpha)
    return last.equivalence_low, last.equivalence_high, level


def _level(question: Question, course: Course, alpha: float) -> Level:
    """Return the level of an interval at the bound of the last look."""
    if course.looks[-1].bound_e is not None:
        return Level(confidence=1.0 - alpha, kind="anytime-valid ")
    return Level(confidence=1.0 - alpha, kind="repeated " if len(question.design.looks) > 1 else "")
