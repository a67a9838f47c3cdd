"""The sentences on a comparison, written from its evidence; this module computes and decides nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.design.design import Design
from esper_ab.stats.least_pairs import LEAST_PAIRS, smallest_p
from esper_ab.stats.pair import outcomes
from esper_ab.stats.rounding import alike
from esper_ab.stats.text import digits_apart, p_beside, p_text, percent, signed
from esper_ab.verdict.any_shape_words import lacking_evidence
from esper_ab.verdict.evidence import DifferenceInterval, Evidence
from esper_ab.verdict.further_pairs import next_look, pairs_for_an_answer
from esper_ab.verdict.identical_words import identical_reason
from esper_ab.verdict.inconclusive import Inconclusive
from esper_ab.verdict.not_worse_words import not_worse_test
from esper_ab.verdict.verdict import CLAIMS, Verdict

_OPEN = (Verdict.NO_INFERENCE, Verdict.INCONCLUSIVE)


def interval(evidence: Evidence) -> str:
    """Return "95 % repeated interval -0.40 to +3.20", or "no interval"."""
    return limits_text((evidence.low, evidence.high, evidence.level), evidence.design)


def limits_text(limits: DifferenceInterval, design: Design) -> str:
    """Return limits with their level, as in "95 % repeated interval -0.40 to +3.20", or "no interval"."""
    low, high, level = limits
    if low is None or high is None:
        return "no interval"
    return f"{level} {span(low, high, design)}"


def span(low: float, high: float, design: Design) -> str:
    """Return limits, as in "-0.40 to +3.20", with enough decimals to keep each on its side of 0 and of the margin."""
    digits = digits_apart((low, high), (-design.margin, 0.0, design.margin), design.digits)
    return f"{signed(low, digits)} to {signed(high, digits)}"


def _pairs_to_call_it_small(evidence: Evidence) -> str:
    """Say from when the difference could be claimed to be smaller than the margin."""
    if evidence.small_from and evidence.design.non_inferiority is not None:
        return f"Calling it not worse takes {evidence.small_from}."
    if evidence.small_from:
        return f"Calling it smaller than the margin takes {evidence.small_from}."
    return ""


def sentence(evidence: Evidence) -> str:
    """Write the verdict and the numbers that it rests on; `headline` is the plain version."""
    verdict = evidence.verdict
    question = evidence.question
    a = question.a
    b = question.b
    n = evidence.counted(len(evidence.pairs))
    if verdict is Verdict.BLOCKED:
        reason = " ".join(finding.sentence for finding in evidence.findings if finding.weight == "blocks")
        return f"BLOCKED ({n}). {reason} There is no verdict on {a} and {b}."
    if verdict is Verdict.NO_INFERENCE and len(evidence.data) < 2 and (evidence.pairs or evidence.estimate is None):
        return _no_inference(evidence)
    if verdict is Verdict.IDENTICAL:
        return f"IDENTICAL ({n}). All records of {a} and {b} agree: {identical_reason(question)} No test applies."
    if verdict in _OPEN:
        result = _undecided(evidence)
    else:
        result = _decided(evidence)
    return f"{result} Conditional on {question.scope}."


def _estimate(evidence: Evidence) -> str:
    """Write the estimate, as in "shaped - simplified = +1.20 points"."""
    assert evidence.estimate is not None
    design = evidence.design
    direction_words = "" if design.outcome.sign > 0.0 else " (lower is better)"
    marks: tuple[float, ...] = ()
    if evidence.verdict in CLAIMS:
        marks = (-design.margin, 0.0, design.margin)
    digits = digits_apart((evidence.estimate,), marks, design.digits)
    return (
        f"{evidence.question.a} - {evidence.question.b} = "
        f"{design.difference(evidence.estimate, digits)}{direction_words}"
    )


def _no_inference(evidence: Evidence) -> str:
    question = evidence.question
    if evidence.estimate is None:
        return (
            f"NO INFERENCE ({_nothing_to_compare(evidence)}). Nothing can be said about {question.a} and {question.b}."
        )
    if question.run_sd is None:
        spread = "The spread between runs of one group is unknown without a calibration"
    else:
        sd = evidence.design.size(question.run_sd)
        spread = f"Runs of one group have a standard deviation of about {sd} (calibration)"
    flag = f" (--seeds {LEAST_PAIRS})" if question.recorded else ""
    return (
        f"NO INFERENCE (1 pair). {_estimate(evidence)}. These are two runs. {spread}. "
        f"A verdict needs at least {LEAST_PAIRS} pairs{flag}."
    )


def _nothing_to_compare(evidence: Evidence) -> str:
    if not evidence.design.paired:
        return f"a group without {evidence.question.row}s"
    if len(evidence.lost.replicates) < evidence.question.planned:
        return "no complete pair yet"
    return "no complete pair"


def _decided(evidence: Evidence) -> str:
    question = evidence.question
    n = evidence.counted(evidence.used)
    margin = question.design.margin_words
    looks = f"{_deciding_look(evidence)}{_later_look(evidence)}"
    numbers = f"{_estimate(evidence)}, {interval(evidence)}, {_test(evidence)}{looks}."
    if evidence.verdict is Verdict.EQUIVALENT:
        tost = f" (TOST p {p_text(evidence.equivalence.p)})" if evidence.equivalence else ""
        return (
            f"EQUIVALENT within +-{margin} ({n}). {numbers} A difference of the margin or more is rejected in "
            f"both directions{tost}."
        )
    if evidence.verdict is Verdict.NOT_WORSE:
        numbers = f"{_estimate(evidence)}, {interval(evidence)}, {not_worse_test(evidence)}{looks}."
        return f"NOT WORSE by {margin} or more ({n}). {numbers}"
    parts = [f"{evidence.verdict} ({n}).", numbers]
    if evidence.verdict in (Verdict.BETTER, Verdict.WORSE):
        parts.append(_pairs_to_call_it_small(evidence))
    else:
        parts.append(f"There is a difference, smaller than the margin of {margin}{_simultaneous_interval(evidence)}.")
    return _joined(parts)


def _simultaneous_interval(evidence: Evidence) -> str:
    """Give the interval that holds for all comparisons at once, if there are several."""
    design = evidence.question.design
    if len(design.comparisons) < 2:
        return ""
    return f" ({limits_text(evidence.simultaneous, design)})"


def _joined(parts: Sequence[str]) -> str:
    """Join the parts that are not empty."""
    return " ".join(part for part in parts if part)


def _test(evidence: Evidence) -> str:
    """Write the deciding statistic of the last look, with its bound."""
    look = evidence.last_look
    kind = evidence.test
    if look is not None and look.bound_e is not None:
        e_value = "no e-value" if look.e is None else f"e-value {look.e:.3g}"
        return f"{e_value} ({look.bound_e:g} required)"
    p = _deciding_p(evidence)
    if p is None:
        return f"no {kind}"
    if look is None or look.bound_p is None:
        return f"{kind} p {p_text(p)}"
    p_words, bound = p_beside(p, look.bound_p)
    return f"{kind} p {p_words} ({bound} required)"


def _deciding_p(evidence: Evidence) -> float | None:
    """Return the p of the last look; before the first look, that of the effect so far."""
    if evidence.last_look is not None:
        return evidence.last_look.p
    return evidence.effect.p if evidence.effect else None


def _deciding_look(evidence: Evidence) -> str:
    """Name the look that decided the comparison; "" in a design with a single look."""
    deciding_replicates = evidence.progress.decided_at
    design = evidence.design
    if deciding_replicates is None or (len(design.looks) < 2 and design.anytime_after is None):
        return ""
    return f", decided {_look_in_words(design, deciding_replicates)}"


def _deciding_look_suffix(evidence: Evidence) -> str:
    """Name the look that decided or stopped the comparison, as in " after 8 seeds (look 1 of 2)"."""
    return _deciding_look(evidence).removeprefix(", decided")


def _later_look(evidence: Evidence) -> str:
    """Say that the numbers are from a look after the deciding one; "" if they are not."""
    deciding_replicates = evidence.progress.decided_at
    look = evidence.last_look
    if look is None or deciding_replicates in (None, look.replicates):
        return ""
    return f"; these numbers and their bound are from the look {_look_in_words(evidence.design, look.replicates)}"


def _look_in_words(design: Design, replicates: int) -> str:
    seeds = f"after {replicates} {design.unit}s"
    looks = design.looks
    if replicates not in looks:
        return seeds
    return f"{seeds} (look {looks.index(replicates) + 1} of {len(looks)})"


def _undecided(evidence: Evidence) -> str:
    progress_words = "" if evidence.progress.finished else " so far"
    result = f"{evidence.verdict}{progress_words} ({_pairs_so_far(evidence)}). {_result_so_far(evidence)}"
    if evidence.unaudited not in _OPEN and evidence.capped_by:
        unaudited_words = f"From the {evidence.worded('pairs')} alone the verdict would be {evidence.unaudited}"
        return f"{result} {unaudited_words}, but: {' '.join(evidence.capped_by)}"
    signs_words = evidence.lacking_signs
    signs = f"{signs_words.capitalize()}." if signs_words else ""
    return _joined(
        (
            result,
            signs,
            lacking_evidence(evidence),
            _withdrawn_claim(evidence),
            _kind_and_limits(evidence),
            _pairs_to_call_it_small(evidence),
            next_look(evidence),
            pairs_for_an_answer(evidence),
        )
    )


def _pairs_so_far(evidence: Evidence) -> str:
    """Count the pairs, as in "4 of 8 pairs" before the end of a plan that has one, else as in "4 pairs"."""
    n = len(evidence.pairs)
    if evidence.progress.finished or evidence.most_pairs is None:
        return evidence.counted(n)
    return f"{n} of {evidence.question.planned} pairs"


def _result_so_far(evidence: Evidence) -> str:
    """Write the estimate of an open comparison, and what its interval and test say."""
    if evidence.estimate is None:
        return "At the last look no pair was complete."
    look_words = ""
    if evidence.used != len(evidence.data):
        look_words = f"At the last look, with {evidence.counted(evidence.used)}: "
    if not evidence.sample.suffices or evidence.used < LEAST_PAIRS:
        result_words = _result_of_few_pairs(evidence)
    else:
        result_words = _why_untested(evidence) or _tested(evidence)
    return f"{look_words}{_estimate(evidence)}{result_words}"


def _withdrawn_claim(evidence: Evidence) -> str:
    """Explain an open comparison whose boundary was reached at an earlier look."""
    progress = evidence.progress
    if progress.decision == progress.standing:
        return ""
    claims = {"crossed": "The boundary was crossed", "not-worse": f"{evidence.question.a} was shown to be not worse"}
    claim = claims.get(progress.decision, "Equivalence was shown")
    return f"{claim}{_deciding_look_suffix(evidence)}, but the last look no longer shows it."


def _kind_and_limits(evidence: Evidence) -> str:
    """Name the kind of INCONCLUSIVE and the differences that the interval excludes; "" if there is no such kind."""
    design = evidence.design
    exclusion_words = ""
    if evidence.low is not None and evidence.high is not None:
        widest_limit = max(abs(evidence.low), abs(evidence.high))
        exclusion_words = f" the interval excludes differences beyond {design.size(widest_limit)}"
    match evidence.inconclusive:
        case None:
            return ""
        case Inconclusive.BOUNDED:
            return f"Bounded:{exclusion_words}."
        case Inconclusive.FUTILE:
            stop_words = _stopped(evidence)
            return f"{stop_words}, but{exclusion_words}." if exclusion_words else f"{stop_words}."
        case Inconclusive.UNINFORMATIVE:
            data_words = "this plan" if evidence.question.declared else "these pairs"
            reach = f"Uninformative: {data_words} could not have shown {evidence.aim}"
            return f"{reach};{exclusion_words}." if exclusion_words else f"{reach}."


def _stopped(evidence: Evidence) -> str:
    """Write why a look stopped a comparison for futility, with the interval used."""
    design = evidence.design
    limits_words = f"the {limits_text(evidence.futility, design)} lies inside +-{design.margin_words}"
    look_words = _deciding_look_suffix(evidence)
    return (
        f"Stopped for futility{look_words}: {limits_words}, so a difference that large is unlikely; this claims nothing"
    )


def _result_of_few_pairs(evidence: Evidence) -> str:
    """Write what fewer pairs than a verdict needs show, and which results cannot come from so few runs."""
    n = evidence.counted(evidence.used)
    if evidence.low is None:
        result = f" in all {n}: without spread there is no interval." if _all_alike(evidence) else "."
    elif evidence.plain is None or evidence.items is not None:
        result = f", {interval(evidence)}, {_test(evidence)}."
    else:
        result = f". If the differences are normal, {interval(evidence)}; this assumption cannot be checked with {n}."
    parts = [result]
    if evidence.question.items is not None and evidence.sample.kind != "pairs":
        sample = evidence.sample
        kind = "runs per group" if sample.kind == "runs" else f"independent {evidence.question.items.unit}s"
        return f"{result} A verdict needs at least {sample.least} {kind}."
    if evidence.pairs:
        alpha = evidence.design.alpha
        least_p = smallest_p(evidence.used)
        no_verdict_words = f", so no verdict at {percent(alpha)} can be given" if least_p > alpha else ""
        parts.append(f"The strongest exact result possible with {n} is p = {least_p:.2g}{no_verdict_words}.")
    parts.append(evidence.worded(f"A verdict needs at least {LEAST_PAIRS} pairs."))
    return " ".join(parts)


def _why_untested(evidence: Evidence) -> str:
    """Write why enough pairs allow no test of the mean; "" if they allow one."""
    n = evidence.counted(evidence.used)
    lacking_words = "no test, no interval and no verdict"
    if evidence.constant:
        return f": {evidence.constant}, so no test of a mean applies; this is the answer for these seeds."
    if _all_alike(evidence):
        return f" in every pair: without spread there is {lacking_words}."
    if evidence.degenerate and evidence.plain is not None and evidence.plain.degenerate:
        few_words = f"fewer than {LEAST_PAIRS} by another"
        return f". {_most_alike(evidence)} of {n} differ by the same amount and {few_words}: there is {lacking_words}."
    if _is_unadjusted(evidence):
        return ", not adjusted: group and order cannot be separated in these pairs, so the look decides nothing."
    if evidence.effect is not None and evidence.effect.degenerate:
        variation_words = (
            "apart from device and order nothing varies between pairs" if evidence.pairs else "too little varies"
        )
        return f": {variation_words}, so there is {lacking_words}."
    return ""


def _tested(evidence: Evidence) -> str:
    if evidence.low is None:
        return f", {_test(evidence)}; at this bound {evidence.counted(evidence.used)} give no interval."
    return f", {interval(evidence)}, {_test(evidence)}."


def _most_alike(evidence: Evidence) -> int:
    """Return how many of the used pairs have the commonest difference."""
    return alike(*outcomes(evidence.pairs[: evidence.used]))


def _all_alike(evidence: Evidence) -> bool:
    """True if the deciding test does not apply because all used pairs have the same difference."""
    return evidence.degenerate and _most_alike(evidence) == evidence.used


def _is_unadjusted(evidence: Evidence) -> bool:
    """True if the position effects could not be separated from the groups, at the last look or before the first."""
    if evidence.last_look is not None:
        return evidence.last_look.mean is None
    return evidence.effect is None
