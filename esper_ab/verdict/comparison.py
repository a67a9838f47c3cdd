"""Compare two groups: the statistics of their pairs, the verdict, and the sentences that report them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from esper_ab.stats.equivalence import equivalence
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import Data, Pair, Samples, before, outcomes
from esper_ab.stats.paired_difference import paired_difference
from esper_ab.stats.proportions import Proportions
from esper_ab.verdict import caveats, headline, sentences
from esper_ab.verdict.collapse import unseen
from esper_ab.verdict.descriptive import describe
from esper_ab.verdict.evidence import DifferenceInterval, Evidence, Numbers
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.imputation import imputed, limits_with_losses
from esper_ab.verdict.inconclusive import Inconclusive
from esper_ab.verdict.look import effect_of
from esper_ab.verdict.looks import Course
from esper_ab.verdict.question import Lost, Question
from esper_ab.verdict.sample_size import needed_anew, needed_here, smallest_difference, spread
from esper_ab.verdict.sentences_on_losses import losses_cap
from esper_ab.verdict.verdict import CLAIMS, Verdict


@dataclass(frozen=True, kw_only=True)
class Comparison(Evidence):
    """The evidence on a - b, with its sentences."""

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
        """The caveats on the verdict, each in one or two sentences."""
        return caveats.caveats(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The caveats that are shown wherever the verdict is."""
        return caveats.warnings(self)

    @property
    def answer(self) -> tuple[str, ...]:
        """The headline, then each warning after the mark "! "."""
        return self.headline, *(f"! {warning}" for warning in self.warnings)


def compare(
    question: Question,
    data: Data,
    course: Course,
    *,
    same_records: bool,
    lost: Lost,
    findings: Sequence[Finding],
) -> Comparison:
    """Compute the statistics of the complete pairs (in any order), or of unpaired runs, and reach a verdict.

    `course`: the course of this comparison, from `follow`; the decision comes from the course alone. `same_records`:
    whether the digests of both runs agree in every pair. `findings`: all findings of the audit.
    """
    touching = tuple(finding for finding in findings if finding.touches(question.a, question.b))
    return _judge(_numbers(question, before(data, sys.maxsize), course), same_records, lost, touching)


def _numbers(question: Question, data: tuple[Pair, ...] | Samples, course: Course) -> Numbers:
    """Compute all numbers that follow from the runs and the looks."""
    design = question.design
    last = course.last
    used = data if last is None else before(data, last.replicates)
    effect = effect_of(design, used)
    (a, b) = outcomes(used)
    paired = not isinstance(used, Samples)
    t = None if isinstance(effect, Proportions) else effect
    several = len(used) > 1 and a != b
    level = 1.0 - (last.alpha if last else question.alpha)
    plain = paired_difference(a, b, level) if used and paired and t is effect else None
    bound = last.equivalence_p if last else None
    tost = equivalence(t, design.margin, bound) if t and bound and several else None
    found = spread(effect)
    shown = plain if effect is None else effect
    return Numbers(
        question=question,
        course=course,
        pairs=() if isinstance(data, Samples) else data,
        samples=data if isinstance(data, Samples) else None,
        used=len(used),
        effect=effect,
        plain=plain,
        estimate=shown.mean if shown else None,
        equivalence=tost,
        descriptive=describe(a, b, question.rng_seed, lower=question.sign < 0.0, paired=paired, binary=t is not effect),
        pairs_needed=needed_here(question, course, found) if found else None,
        pairs_anew=needed_anew(question, course, found) if found else None,
    )


def _judge(numbers: Numbers, same_records: bool, lost: Lost, findings: tuple[Finding, ...]) -> Comparison:
    """Apply the losses and the audit to the numbers."""
    question = numbers.question
    course = numbers.course
    pairs = numbers.pairs
    again = imputed(question.design, numbers.data, course, lost)
    caps = [finding.sentence for finding in findings if finding.weight == "caps"]
    baselines = [finding.sentence for finding in findings if finding.weight == "caps equivalence"]
    if again is not None and not again.survives:
        caps.append(losses_cap(question, again, small=course.decision == "equivalent"))
    # Coarse or saturated outcomes can be equal although the records differ, so they do not show that the groups are
    # equal.
    identical = same_records and bool(pairs) and all(pair.a == pair.b for pair in pairs)
    small = numbers.last_look is not None and numbers.last_look.small
    unaudited = _seen(numbers, identical=identical, small=small)
    if unaudited is Verdict.EQUIVALENT:
        caps += baselines
    small = small and not baselines and (again is None or again.small)
    verdict = Verdict.INCONCLUSIVE if caps else _seen(numbers, identical=identical, small=small)
    if any(finding.weight == "blocks" for finding in findings):
        verdict = Verdict.BLOCKED
    elif len(numbers.data) < LEAST_PAIRS and (caps or not identical):
        verdict = Verdict.NO_INFERENCE
    low, high, level = _equivalence_interval(numbers) if verdict is Verdict.EQUIVALENT else numbers.at_look
    if question.open_ended:
        most = None
    else:
        most = max(len(numbers.data), question.planned - len(lost.replicates))
    found = spread(numbers.effect)
    if found and most is not None:
        smallest = smallest_difference(question, course, found, most)
    else:
        smallest = None
    undecided = verdict is Verdict.INCONCLUSIVE and not caps and course.finished
    return Comparison(
        **vars(numbers),
        same_records=same_records,
        low=low,
        high=high,
        level=level,
        most_pairs=most,
        smallest_resolvable=smallest,
        lost=lost,
        imputed=again,
        findings=findings,
        capped_by=tuple(caps),
        limits_with_losses=limits_with_losses(question.design, numbers.data, course, lost),
        unseen=None if verdict not in CLAIMS or numbers.proportions else unseen(question.design, numbers.data, course),
        inconclusive=_kind(numbers, low, high, smallest) if undecided else None,
        unaudited=unaudited,
        verdict=verdict,
    )


def _seen(numbers: Numbers, *, identical: bool, small: bool) -> Verdict:
    """Return the verdict from the records and the looks alone, before the audit and the losses are applied.

    `identical`: whether the records are equal. `small`: whether the difference is shown to be below the margin.
    """
    if identical:
        return Verdict.IDENTICAL
    if numbers.course.standing == "crossed":
        better = Verdict.BETTER_BELOW_MARGIN if small else Verdict.BETTER
        worse = Verdict.WORSE_BELOW_MARGIN if small else Verdict.WORSE
        if numbers.course.direction * numbers.question.sign > 0.0:
            return better
        return worse
    if numbers.course.standing == "equivalent":
        return Verdict.EQUIVALENT
    return Verdict.INCONCLUSIVE


def _kind(numbers: Numbers, low: float | None, high: float | None, smallest: float | None) -> Inconclusive | None:
    """Return the kind of INCONCLUSIVE (stopped for futility, or whether the margin was detectable); else None."""
    if numbers.course.standing == "futile":
        return Inconclusive.FUTILE
    margin = numbers.design.margin
    within = low is not None and high is not None and max(-low, high) < margin
    reached = low is not None and smallest is not None and smallest <= margin
    if within or reached:
        return Inconclusive.BOUNDED
    return None if numbers.pairs_needed is None else Inconclusive.UNINFORMATIVE


def _equivalence_interval(numbers: Numbers) -> DifferenceInterval:
    """Return the interval that EQUIVALENT rests on, at the comparison's initial share of alpha."""
    last = numbers.course.looks[-1]
    alpha = numbers.question.alpha
    level = numbers.level_at(alpha if numbers.proportions else 2.0 * alpha)
    return last.equivalence_low, last.equivalence_high, level
