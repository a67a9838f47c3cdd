"""Compare two groups: the statistics of their pairs, the verdict, and the sentences that report them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from esper_ab.design.design import Design
from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.equivalence import Equivalence, equivalence
from esper_ab.stats.floats import Floats
from esper_ab.stats.pair import NO_PAIRS, Data, Samples, before, outcomes
from esper_ab.stats.paired_difference import PairedDifference, paired_difference, without_positions
from esper_ab.stats.proportions import Proportions
from esper_ab.verdict import caveats, headline, rule_sentence, sentences
from esper_ab.verdict.collapse import Unseen, unseen
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.descriptive import describe
from esper_ab.verdict.effect import Effect
from esper_ab.verdict.evidence import DifferenceInterval, Evidence, Numbers
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.grounds import Grounds, decide, decide_unaudited
from esper_ab.verdict.guardrails import after_guardrails, guardrail_results
from esper_ab.verdict.imputation import Imputed, imputed, limits_with_losses
from esper_ab.verdict.inconclusive import Inconclusive
from esper_ab.verdict.look import Look, effect_of, with_prior
from esper_ab.verdict.looks import ComparisonProgress
from esper_ab.verdict.pairing import Pairing
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
        return rule_sentence.rule_sentence(self.question.design)

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
    pairing: Pairing,
    progress: ComparisonProgress,
    *,
    same_records: bool,
    findings: Sequence[Finding],
) -> Comparison:
    """Compute the statistics of the complete pairs (in any order), or of unpaired runs, and reach a verdict.

    `progress`: the looks taken at this comparison, from which alone the decision comes. `same_records`:
    whether the digests of both runs agree in every pair. `findings`: all findings of the audit.
    """
    touching_findings = tuple(finding for finding in findings if finding.touches(question.a, question.b))
    numbers = _numbers(question, before(pairing.pairs, sys.maxsize), progress, pairing.items)
    return _judge(numbers, same_records, pairing, touching_findings)


def _numbers(question: Question, data: Data, progress: ComparisonProgress, items: ComparedItems | None) -> Numbers:
    """Compute all numbers that follow from the runs and the looks."""
    paired = not isinstance(data, Samples)
    last_look = progress.last
    used_data = data
    alpha = question.alpha
    if last_look is not None:
        used_data = before(data, last_look.replicates)
        alpha = last_look.alpha
    a, b = outcomes(used_data)
    effect = effect_of(question.design, used_data, items)
    if last_look is not None:
        effect = with_prior(effect, last_look.prior)
    binary = isinstance(effect, Proportions)
    plain_effect = None
    if used_data and paired and not binary:
        plain_effect = _plain(question.design, a, b, effect, 1.0 - alpha)
    deciding_effect = plain_effect if effect is None else effect
    extension_need = None
    new_plan_need = None
    known_spread = spread(effect)
    if known_spread is not None:
        extension_need = needed_here(question, progress, known_spread)
        new_plan_need = needed_anew(question, progress, known_spread)
    return Numbers(
        question=question,
        progress=progress,
        items=items,
        pairs=NO_PAIRS if isinstance(data, Samples) else data,
        samples=data if isinstance(data, Samples) else None,
        used=len(used_data),
        effect=effect,
        plain=plain_effect,
        estimate=None if deciding_effect is None else deciding_effect.mean,
        equivalence=_equivalence_tests(question, used_data, effect, last_look),
        descriptive=describe(a, b, question.rng_seed, lower=question.sign < 0.0, paired=paired, binary=binary),
        pairs_needed=extension_need,
        pairs_anew=new_plan_need,
    )


def _plain(design: Design, a: Floats, b: Floats, effect: Effect | None, level: float) -> PairedDifference:
    """Return the unadjusted paired t-test; the `effect` is that test already if it is adjusted for nothing."""
    if isinstance(effect, AdjustedDifference) and not design.adjusted and not design.prior_df:
        return without_positions(effect, level)
    return paired_difference(a, b, level)


def _equivalence_tests(
    question: Question, used_data: Data, effect: Effect | None, last_look: Look | None
) -> Equivalence | None:
    """Run both one-sided t-tests at the margin, at the bound of the last look; None if that is not possible."""
    if effect is None or isinstance(effect, Proportions):
        return None
    if question.design.non_inferiority is not None:
        return None  # this plan asks for one of the two
    a, b = outcomes(used_data)
    if len(used_data) <= 1 or np.array_equal(a, b) or last_look is None or not last_look.equivalence_p:
        return None
    return equivalence(effect, question.design.margin, last_look.equivalence_p)


def _judge(numbers: Numbers, same_records: bool, pairing: Pairing, findings: tuple[Finding, ...]) -> Comparison:
    """Apply the losses and the audit to the numbers, and test the guardrails."""
    losses = pairing.lost
    retest = imputed(numbers.design, numbers.data, numbers.progress, losses, numbers.items)
    unaudited_grounds = _grounds_before_audit(numbers, same_records=same_records)
    unaudited_verdict = decide_unaudited(unaudited_grounds)
    caps = _caps(numbers, findings, retest, unaudited_verdict)
    grounds = msgspec.structs.replace(
        unaudited_grounds,
        blocked=any(finding.weight == "blocks" for finding in findings),
        capped=bool(caps),
        small=unaudited_grounds.small and _may_be_small(findings, retest),
    )
    verdict = after_guardrails(numbers.design, numbers.progress, pairing, decide(grounds))
    interval = _interval_of(verdict, numbers)
    low, high, level = interval
    most_pairs = _most_pairs(numbers, losses)
    resolvable_difference = _smallest_resolvable(numbers, most_pairs)
    kind = None if caps else _kind_of_inconclusive(numbers, verdict, interval, resolvable_difference)
    return Comparison(
        question=numbers.question,
        progress=numbers.progress,
        items=numbers.items,
        pairs=numbers.pairs,
        samples=numbers.samples,
        used=numbers.used,
        estimate=numbers.estimate,
        effect=numbers.effect,
        plain=numbers.plain,
        descriptive=numbers.descriptive,
        equivalence=numbers.equivalence,
        pairs_needed=numbers.pairs_needed,
        pairs_anew=numbers.pairs_anew,
        same_records=same_records,
        low=low,
        high=high,
        level=level,
        most_pairs=most_pairs,
        smallest_resolvable=resolvable_difference,
        lost=losses,
        imputed=retest,
        findings=findings,
        capped_by=caps,
        limits_with_losses=limits_with_losses(numbers.design, numbers.data, numbers.progress, losses, numbers.items),
        unseen=_unseen(verdict, numbers),
        inconclusive=kind,
        guardrails=guardrail_results(numbers.design, numbers.progress, pairing, verdict),
        unaudited=unaudited_verdict,
        verdict=verdict,
    )


def _interval_of(verdict: Verdict, numbers: Numbers) -> DifferenceInterval:
    """Return the interval that the verdict rests on."""
    if verdict is Verdict.EQUIVALENT:
        return _equivalence_interval(numbers)
    if verdict in (Verdict.NOT_WORSE, Verdict.WORSE_BELOW_MARGIN):
        return _claim_interval(numbers) or numbers.at_look
    return numbers.at_look


def _unseen(verdict: Verdict, numbers: Numbers) -> Unseen | None:
    """Return what a claim could not have seen; None for other verdicts, and for tests that count with it."""
    if verdict not in CLAIMS or numbers.proportions or numbers.at_look[2].any_shape:
        return None
    return unseen(numbers.design, numbers.data, numbers.progress, numbers.items)


def _grounds_before_audit(numbers: Numbers, *, same_records: bool) -> Grounds:
    """Return the grounds that the records and the looks alone give."""
    # Coarse or saturated outcomes can be equal although the records differ, so they do not show that the groups are
    # equal.
    pairs = numbers.pairs
    is_all_equal = bool(pairs) and np.array_equal(pairs.a, pairs.b)
    last_look = numbers.last_look
    return Grounds(
        pairs=numbers.sample.size,
        least=numbers.sample.least,
        identical=same_records and is_all_equal and not numbers.question.coarse,
        standing=numbers.progress.standing,
        direction=numbers.progress.direction * numbers.question.sign,
        small=last_look is not None and last_look.small,
    )


def _caps(
    numbers: Numbers, findings: tuple[Finding, ...], retest: Imputed | None, unaudited_verdict: Verdict
) -> tuple[str, ...]:
    """Return the reasons why the verdict is at most INCONCLUSIVE, one sentence each."""
    caps = [finding.sentence for finding in findings if finding.weight == "caps"]
    if retest is not None and not retest.survives:
        claims_equivalence = numbers.progress.decision == "equivalent"
        caps.append(losses_cap(numbers.question, retest, is_small=claims_equivalence))
    if unaudited_verdict in (Verdict.EQUIVALENT, Verdict.NOT_WORSE):
        caps += [finding.sentence for finding in findings if finding.weight == "caps equivalence"]
    return tuple(caps)


def _may_be_small(findings: tuple[Finding, ...], retest: Imputed | None) -> bool:
    """True if neither the audit nor the losses forbid the claim that a difference is smaller than the margin."""
    if any(finding.weight == "caps equivalence" for finding in findings):
        return False
    return retest is None or retest.small


def _most_pairs(numbers: Numbers, losses: Lost) -> int | None:
    """Return the most pairs that the plan can still reach; None if there is no maximum."""
    question = numbers.question
    if question.open_ended:
        return None
    return max(len(numbers.data), question.planned - len(losses.replicates))


def _smallest_resolvable(numbers: Numbers, most_pairs: int | None) -> float | None:
    """Return the smallest difference that `most_pairs` pairs detect; None if there is no maximum or no spread."""
    known_spread = spread(numbers.effect)
    if known_spread is None or most_pairs is None:
        return None
    return smallest_difference(numbers.question, numbers.progress, known_spread, most_pairs)


def _kind_of_inconclusive(
    numbers: Numbers, verdict: Verdict, interval: DifferenceInterval, resolvable_difference: float | None
) -> Inconclusive | None:
    """Return the kind of INCONCLUSIVE (stopped for futility, or whether the margin was detectable); else None."""
    if verdict is not Verdict.INCONCLUSIVE or not numbers.progress.finished:
        return None
    low, high, _ = interval
    if numbers.progress.standing == "futile":
        return Inconclusive.FUTILE
    margin = numbers.design.margin
    is_inside = low is not None and high is not None and max(-low, high) < margin
    could_decide = low is not None and resolvable_difference is not None and resolvable_difference <= margin
    if is_inside or could_decide:
        return Inconclusive.BOUNDED
    if numbers.pairs_needed is not None:
        return Inconclusive.UNINFORMATIVE
    return None


def _equivalence_interval(numbers: Numbers) -> DifferenceInterval:
    """Return the interval that EQUIVALENT rests on, at the comparison's initial share of alpha."""
    last_look = numbers.progress.looks[-1]
    alpha = numbers.question.alpha
    if not numbers.proportions:
        alpha = 2.0 * alpha  # for two one-sided tests
    return last_look.equivalence_low, last_look.equivalence_high, numbers.level_at(alpha)


def _claim_interval(numbers: Numbers) -> DifferenceInterval | None:
    """Return the limits of the one-sided test at the margin; None if the plan has none, or they include 0 after WORSE.

    The latter is possible if the comparison was shown to be worse at a larger share of alpha than its first.
    """
    look = numbers.progress.looks[-1]
    if look.non_inferiority is None:
        return None
    low = look.non_inferiority.low
    high = look.non_inferiority.high
    if low is None or high is None or (numbers.progress.standing == "crossed" and low <= 0.0 <= high):
        return None
    return low, high, numbers.level_at(2.0 * numbers.question.alpha)
