"""Compare two groups: the statistics of their pairs, the verdict, and the sentences that report them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from esper_ab.design.design import EXTENSION_STRICTNESS
from esper_ab.design.pairs_needed import PairsNeeded, PBound, pairs_needed, smallest_resolvable
from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.anytime_t import anytime_interval
from esper_ab.stats.distributions import t_sf
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import Data, Pair, Samples, before, outcomes
from esper_ab.stats.proportions import Proportions
from esper_ab.stats.t_tests import equivalence, paired_difference
from esper_ab.verdict import caveats, headline, sentences
from esper_ab.verdict.caveats import describe
from esper_ab.verdict.evidence import DifferenceInterval, Evidence, Kind, Numbers
from esper_ab.verdict.follow import Course
from esper_ab.verdict.look import Effect, effect_of
from esper_ab.verdict.pairing import Lost, Question
from esper_ab.verdict.sensitivity import imputed, limits_with_losses, unseen
from esper_ab.verdict.sentences import losses_cap
from esper_ab.verdict.vocabulary import CLAIMS, Finding, Verdict

# --- sample size -----------------------------------------------------------------------------------------------------
# How many pairs a clear answer to a comparison takes, from the spread of its pairs and the bound of its rule. Pure.


Spread = tuple[float, int, int]  # SD of pair differences in a balanced plan, its df, columns of the design


def spread(effect: Effect | None) -> Spread | None:
    """Return the SD of pair differences in a balanced plan, its degrees of freedom, and the columns of the design.

    Returns None if the effect does not come from a paired t-test, or if it has no standard error.
    """
    if not isinstance(effect, AdjustedDifference) or effect.se is None or effect.name:
        return None
    return effect.se * math.sqrt(effect.pairs), int(effect.df), effect.pairs - int(effect.df)


def extendable(question: Question, course: Course) -> bool:
    """True if the comparison is open and its runs have records, so that `esper-ab resume --seeds` could decide it."""
    return question.recorded and course.decision == "open"


def needed_here(question: Question, course: Course, found: Spread) -> PairsNeeded:
    """Return how many pairs the margin needs in this plan or, if it is too small, in an extension, where possible."""
    (sd, df, columns), design, bound = found, question.design, _bound(question, course)
    needed = pairs_needed(sd, df, design.margin, bound, columns)
    if callable(bound) or needed.pairs <= question.planned or not (design.boundaries and extendable(question, course)):
        return needed  # if no extension is possible: the pairs of a longer plan
    evidence = EXTENSION_STRICTNESS / _held(question, course)
    return pairs_needed(sd, df, design.margin, lambda pairs: _anytime_p(pairs, evidence), columns)


def needed_anew(question: Question, course: Course, found: Spread) -> PairsNeeded | None:
    """Return how many pairs a new plan with about the same last bound as this plan needs to detect the margin.

    Returns None unless this plan has looks.
    """
    if not question.design.boundaries:
        return None
    sd, df, columns = found
    return pairs_needed(sd, df, question.design.margin, _planned_bound(question, course), columns)


def smallest_difference(question: Question, course: Course, found: Spread, most: int) -> float | None:
    """Return the smallest difference that `most` pairs detect with 80 % power; None if there is no such difference."""
    if most < LEAST_PAIRS:
        return None
    bound = _bound(question, course)
    at = bound(most) if callable(bound) else bound
    return smallest_resolvable(found[0], most, at, found[2], signed=not callable(bound))


def _bound(question: Question, course: Course) -> PBound:
    """Return the bound on p at the end of the plan, which depends on the number of pairs under the anytime-valid rule.
    """
    design = question.design
    if design.anytime_after is None:
        return _planned_bound(question, course)
    evidence = design.evidence * design.alpha / _held(question, course)
    return lambda pairs: _anytime_p(pairs, evidence)


def _planned_bound(question: Question, course: Course) -> float:
    """Return the bound on p at the last planned look."""
    held = _held(question, course)
    return next((one.nominal_p[-1] for one in question.design.boundaries if math.isclose(one.alpha, held)), held)


def _held(question: Question, course: Course) -> float:
    """Return the share of alpha that the comparison holds."""
    return course.looks[-1].alpha if course.looks else question.alpha


def _anytime_p(pairs: int, evidence: float) -> float:
    """Return the p-value of the t for which `pairs` pairs in a balanced plan have the e-value `evidence`; 0.0 if none.
    """
    found = anytime_interval(0.0, 1.0, pairs - 1, float(pairs), evidence)
    return 0.0 if found is None else 2.0 * float(t_sf(found[1], pairs - 1))


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
    question: Question, data: Data, course: Course, *, same_records: bool, lost: Lost,
    findings: Sequence[Finding],
) -> Comparison:  # fmt: skip
    """Compute the statistics of the complete pairs (in any order), or of unpaired runs, and reach a verdict.

    `course`: the course of this comparison, from `follow`; the decision comes from the course alone. `same_records`:
    whether the digests of both runs agree in every pair. `findings`: all findings of the audit.
    """
    touching = tuple(finding for finding in findings if finding.touches(question.a, question.b))
    return _judge(_numbers(question, before(data, sys.maxsize), course), same_records, lost, touching)


def _numbers(question: Question, data: tuple[Pair, ...] | Samples, course: Course) -> Numbers:
    """Compute all numbers that follow from the runs and the looks."""
    design, last = question.design, course.last
    used = data if last is None else before(data, last.replicates)
    effect, (a, b), paired = effect_of(design, used), outcomes(used), not isinstance(used, Samples)
    t, several = None if isinstance(effect, Proportions) else effect, len(used) > 1 and a != b
    level = 1.0 - (last.alpha if last else question.alpha)
    plain = paired_difference(a, b, level) if used and paired and t is effect else None
    bound = last.equivalence_p if last else None
    tost = equivalence(t, design.margin, bound) if t and bound and several else None
    found, shown = spread(effect), plain if effect is None else effect
    return Numbers(
        question=question, course=course, pairs=() if isinstance(data, Samples) else data,
        samples=data if isinstance(data, Samples) else None, used=len(used), effect=effect, plain=plain,
        estimate=shown.mean if shown else None, equivalence=tost,
        descriptive=describe(
            a, b, question.rng_seed, lower=question.sign < 0.0, paired=paired, binary=t is not effect
        ),
        pairs_needed=needed_here(question, course, found) if found else None,
        pairs_anew=needed_anew(question, course, found) if found else None,
    )  # fmt: skip


def _judge(numbers: Numbers, same_records: bool, lost: Lost, findings: tuple[Finding, ...]) -> Comparison:
    """Apply the losses and the audit to the numbers."""
    question, course, pairs = numbers.question, numbers.course, numbers.pairs
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
    most = None if question.open_ended else max(len(numbers.data), question.planned - len(lost.replicates))
    found = spread(numbers.effect)
    smallest = smallest_difference(question, course, found, most) if found and most is not None else None
    undecided = verdict is Verdict.INCONCLUSIVE and not caps and course.finished
    return Comparison(
        **vars(numbers), same_records=same_records, low=low, high=high, level=level, most_pairs=most,
        smallest_resolvable=smallest, lost=lost, imputed=again, findings=findings, capped_by=tuple(caps),
        limits_with_losses=limits_with_losses(question.design, numbers.data, course, lost),
        unseen=None if verdict not in CLAIMS or numbers.proportions else unseen(question.design, numbers.data, course),
        inconclusive=_kind(numbers, low, high, smallest) if undecided else None, unaudited=unaudited,
        verdict=verdict,
    )  # fmt: skip


def _seen(numbers: Numbers, *, identical: bool, small: bool) -> Verdict:
    """Return the verdict from the records and the looks alone, before the audit and the losses are applied.

    `identical`: whether the records are equal. `small`: whether the difference is shown to be below the margin.
    """
    if identical:
        return Verdict.IDENTICAL
    if numbers.course.standing == "crossed":
        better = Verdict.BETTER_BELOW_MARGIN if small else Verdict.BETTER
        worse = Verdict.WORSE_BELOW_MARGIN if small else Verdict.WORSE
        return better if numbers.course.direction * numbers.question.sign > 0.0 else worse
    return Verdict.EQUIVALENT if numbers.course.standing == "equivalent" else Verdict.INCONCLUSIVE


def _kind(numbers: Numbers, low: float | None, high: float | None, smallest: float | None) -> Kind | None:
    """Return the kind of INCONCLUSIVE (stopped for futility, or whether the margin was detectable); else None."""
    if numbers.course.standing == "futile":
        return "futile"
    margin = numbers.design.margin
    within = low is not None and high is not None and max(-low, high) < margin
    reached = low is not None and smallest is not None and smallest <= margin
    beyond: Kind | None = "uninformative" if numbers.pairs_needed is not None else None
    return "bounded" if within or reached else beyond


def _equivalence_interval(numbers: Numbers) -> DifferenceInterval:
    """Return the interval that EQUIVALENT rests on, at the comparison's initial share of alpha."""
    last, alpha = numbers.course.looks[-1], numbers.question.alpha
    level = numbers.level_at(alpha if numbers.proportions else 2.0 * alpha)
    return last.equivalence_low, last.equivalence_high, level
