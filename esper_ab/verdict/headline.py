"""The headline of a comparison, for a reader who reads nothing else: the answer, its size and its certainty.

This module only formats text. The comparison's first group is named first, as in the verdict and in every number. The
headline never claims more than the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.wording import capital, counted, n_pairs, named
from esper_ab.design.pairs_needed import MOST_NAMED
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import outcomes
from esper_ab.stats.text import digits_apart, percent
from esper_ab.verdict.drift import DRIFT
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.shapes import tails_beyond_margin
from esper_ab.verdict.verdict import CLAIMS, DIFFERENT, Verdict

_ZERO = "the interval includes 0"
_BOUND = "the test has not reached its bound"
_EARLY = "it is too early to call the difference smaller than the margin"
_NO_SPREAD = "too little varies between the pairs for any test"


def headline(evidence: Evidence) -> str:
    """Write the answer in one plain sentence: the difference, its size and its certainty.

    For runs done elsewhere, the sentence ends with the unit that was counted, because only the author of the runs knows
    whether rows are runs.
    """
    said = _answer(evidence)
    unit = evidence.question.unit
    if not unit or not evidence.used:
        return said
    a, b = map(len, outcomes(evidence.samples or evidence.pairs[: evidence.used]))
    each = f"of {evidence.question.a} and {b} of {evidence.question.b}" if a != b else "per group"
    return f"{said.removesuffix('.')}; {counted(a, unit)} {each}."


def _answer(evidence: Evidence) -> str:
    verdict = evidence.verdict
    question = evidence.question
    a = question.a
    b = question.b
    if verdict is Verdict.INCONCLUSIVE:
        return _open(evidence)
    if verdict is Verdict.EQUIVALENT:
        return _equivalent(evidence)
    if verdict in DIFFERENT:
        return _decided(evidence)
    if verdict is Verdict.NO_INFERENCE and evidence.estimate is not None:
        few = evidence.worded(f"Too few pairs to decide{_yet(evidence)} ({evidence.used}; {LEAST_PAIRS} needed)")
        return f"{few}: {_ahead(evidence)}{_wins(evidence)}."
    return headline_of([(a, b)], evidence)


def headline_of(pairs: Sequence[tuple[str, str]], evidence: Evidence) -> str:
    """Write one sentence for several comparisons that are `alike`, without numbers of individual comparisons.

    `evidence`: the evidence on any one of the comparisons.
    """
    them = named(pairs)
    verdict = evidence.verdict
    one = len(pairs) == 1
    if verdict is Verdict.BLOCKED:
        return f"No answer for {them}: the audit blocks the comparison{'' if one else 's; its table says why'}."
    if verdict is Verdict.NO_INFERENCE:
        none = "no pair is complete" if evidence.samples is None else "one has no run"
        if evidence.data:
            return f"{evidence.worded('Too few pairs')} to decide about {them}: {LEAST_PAIRS} are needed."
        return f"Nothing can be said about {them}: {none}."
    if verdict is Verdict.IDENTICAL:
        them = them if one else capital(them)
        if evidence.question.same_settings:
            return f"{them} are the same computation: all records agree, so there is nothing to compare."
        if len(evidence.pairs) == 1:
            where = "the one pair"
        else:
            where = f"all {n_pairs(len(evidence.pairs))}"
        return f"{them} did the same in {where}: all records agree, so the differing settings had no effect."
    why = _why(evidence)
    return f"Not decided{_yet(evidence)} for {them}: {'the intervals include 0' if why == _ZERO else why}."


def alike(evidence: Evidence) -> tuple[str, ...]:
    """Return the key by which `headline_of` groups comparisons in one sentence; the key () is never grouped."""
    if evidence.verdict in CLAIMS:
        return ()
    return (evidence.verdict, headline_of([("a", "b")], evidence))


def _equivalent(evidence: Evidence) -> str:
    """Say that a difference is small, and that a large one is ruled out only if no rare failure can hide one."""
    question = evidence.question
    margin = evidence.design.margin_words
    said = f"{question.a} and {question.b} are equivalent within {margin}: {_ahead(evidence)}"
    tails = [tail for tail, _ in tails_beyond_margin(evidence)]
    if tails:
        counts = " and ".join(str(tail.count) for tail in tails)
        like = f"if pairs like {counts} of these {evidence.used} are no more frequent than here"
        return f"{said}{_bracketed(evidence, f', within the margin, {like}')}."
    if evidence.rules_out_margin:
        return f"{said}{_bracketed(evidence)}, and a difference of {margin} or more is ruled out."
    return f"{said}{_bracketed(evidence, ', within the margin')}."


def _decided(evidence: Evidence) -> str:
    question = evidence.question
    ahead = evidence.course.direction * evidence.question.sign > 0
    small = evidence.verdict in (Verdict.BETTER_BELOW_MARGIN, Verdict.WORSE_BELOW_MARGIN)
    words = question.design.margin_words
    # of a mean over tasks, or of one outcome
    if words == "1 margin":
        margin = words
    else:
        margin = f"the margin of {words}"
    but = f", but by less than {margin}: by " if small else " by "
    where = "" if small else f", {_beside_margin(evidence)} {margin}"
    size = f"{evidence.design.outcome.difference(_size(evidence))}{_bracketed(evidence, where)}"
    return f"{question.a} is {'better' if ahead else 'worse'} than {question.b}{but}{size}{_wins(evidence)}."


def _beside_margin(evidence: Evidence) -> str:
    """Return where the interval lies, with 0 outside it: a difference inside the margin is not worth acting on."""
    low = evidence.low or 0.0
    high = evidence.high or 0.0
    margin = evidence.design.margin
    if max(low, -high) > margin:
        return "beyond"
    if max(-low, high) > margin:
        return "partly within"
    return "within"


def _open(evidence: Evidence) -> str:
    why = _why(evidence)
    if evidence.estimate is None:
        return f"Not decided{_yet(evidence)}: {why}."
    reason = evidence.worded(why)
    if why == _ZERO:
        reason = f"the {_interval(evidence)}, {_span(evidence)}, includes 0"
    if why == _EARLY:
        reason = f"calling the difference smaller than the margin takes {evidence.small_from}"
    if evidence.constant:
        answer = f"every pair differs by {evidence.constant}, so no test of a mean applies"
        return f"Not decided{_yet(evidence)}: {answer}; this is the answer for these seeds."
    if why == _NO_SPREAD and evidence.stuck is not None:
        count, runs, value = evidence.stuck
        stuck = f"{count} of {runs} runs have the outcome {evidence.design.value(value)}"
        reason = f"{stuck}, which leaves too little spread for any test"
    looks = _seen(evidence, "look level", "looks", ("worse than", "better than"), evidence.question.sign)
    return f"Not decided{_yet(evidence)}: {looks}{_wins(evidence)}, but {reason}{_would_decide(evidence, why)}."


def _would_decide(evidence: Evidence, why: str) -> str:
    """Say how many pairs would show a difference of the margin, if more pairs are needed for a decision."""
    anew = evidence.pairs_anew
    here = evidence.pairs_needed
    pairs = min((one.pairs for one in (here, anew) if one is not None), default=0)
    lacking = why in (_ZERO, _BOUND) and evidence.course.finished
    if not lacking or not evidence.used < pairs <= MOST_NAMED:
        return ""
    if anew is not None and here is not None and anew.pairs < here.pairs:
        where = " in a new plan"
    else:
        where = ""
    return f"; about {pairs} pairs{where} would show a difference of {evidence.design.margin_words}"


def _why(evidence: Evidence) -> str:
    """Return why a comparison is not decided, as the end of "Not decided: ..., but ..."."""
    if evidence.capped_by:
        caps = {finding.kind for finding in evidence.findings if finding.weight == "caps"}
        if caps == {DRIFT}:
            return _drifts(evidence)
        if caps:
            return "the audit allows no verdict"
        if evidence.imputed is not None and not evidence.imputed.survives:
            undeclared = f"; no worst outcome is declared for them ({evidence.question.worst_flag})"
            return f"the lost runs could change the answer{undeclared if evidence.imputed.mean is None else ''}"
        return "their outcomes are not clearly better than those of a group that learns nothing"
    if evidence.estimate is None:
        return "no pair was complete at the last look"
    if evidence.used < LEAST_PAIRS:
        return f"a verdict needs at least {LEAST_PAIRS} pairs"
    if evidence.course.standing == "futile":
        return "it was stopped for futility: a difference of the margin had become unlikely"
    if evidence.course.decision != evidence.course.standing:
        return "the last look does not confirm what an earlier one decided"
    return _why_open(evidence)


def _drifts(evidence: Evidence) -> str:
    """Say over which pairs the differences drift, if not only those that the estimate is of are checked."""
    later = len(evidence.course.later)
    if not later:
        return "the differences drift from pair to pair"
    return f"the differences drift over all {n_pairs(evidence.used + later)}, {later} of them after that look"


def _why_open(evidence: Evidence) -> str:
    """Return the reason that follows from the interval."""
    low = evidence.low
    high = evidence.high
    if low is None or high is None:
        if evidence.degenerate:
            return _NO_SPREAD
        return "these pairs give no interval"
    if low <= 0.0 <= high:
        return _EARLY if evidence.small_from else _ZERO
    if evidence.last_look is None:
        return "the first planned look is still to come"
    return evidence.lacking_signs or _BOUND


def _yet(evidence: Evidence) -> str:
    return "" if evidence.course.finished else " yet"


def _ahead(evidence: Evidence) -> str:
    """Return "a is 1.2 points above b": the observation alone."""
    return _seen(evidence, "are level", "is", ("below", "above"), 1.0)


def _seen(evidence: Evidence, equal: str, verb: str, than: tuple[str, str], sign: float) -> str:
    question = evidence.question
    estimate = evidence.estimate
    assert estimate is not None
    if _equal(evidence):
        return f"{question.a} and {question.b} {equal}"
    size = question.design.outcome.difference(_size(evidence))
    return f"{question.a} {verb} {size} {than[estimate * sign > 0.0]} {question.b}"


def _equal(evidence: Evidence) -> bool:
    return evidence.estimate is None or abs(evidence.estimate) < 0.5 * 10.0**-evidence.design.digits


def _size(evidence: Evidence, value: float | None = None) -> str:
    """Format `value`, by default the estimate, without sign, as in "7.9"; use more digits if rounding hides something.

    There is one decimal less than elsewhere, unless a number would keep only one significant digit. There are more
    decimals if the interval would shrink to one number, or if a limit would seem to lie on 0 or on the margin.
    """
    value = evidence.estimate if value is None else value
    numbers = [number for number in (evidence.estimate, evidence.low, evidence.high) if number is not None]
    digits = evidence.design.digits
    margin = evidence.design.margin
    if min(map(abs, numbers), default=0.0) >= 10.0 ** (2 - digits):
        digits -= 1
    marks = (-margin, 0.0, margin)
    apart = list[tuple[tuple[float, ...], tuple[float, ...]]]()
    if evidence.low is not None and evidence.high is not None:
        apart.append(((evidence.low, evidence.high), (*marks, (evidence.low + evidence.high) / 2.0)))
    if evidence.verdict in CLAIMS and evidence.estimate is not None:
        apart.append(((evidence.estimate,), marks))
    while (more := max((digits_apart(*one, digits) for one in apart), default=digits)) > digits:
        digits = more  # digits that keep one number on its side may move another one across
    return f"{abs(value or 0.0):.{digits}f}"


def _wins(evidence: Evidence) -> str:
    """Return ", in 5 of 6 pairs": how many differences have the sign of the estimate, and how many pairs tie."""
    estimate = evidence.estimate
    used = evidence.pairs[: evidence.used]
    if len(used) < 2 or estimate is None or _equal(evidence):
        return ""
    ahead = sum(pair.a > pair.b if estimate > 0 else pair.a < pair.b for pair in used)
    ties = sum(pair.a == pair.b for pair in used)
    return f", in {ahead} of {n_pairs(len(used))}{f' ({ties} tied)' if ties else ''}"


def _bracketed(evidence: Evidence, where: str = "") -> str:
    if evidence.low is None or evidence.high is None:
        return ""
    return f" ({_interval(evidence)} {_span(evidence)}{where})"


def _interval(evidence: Evidence) -> str:
    """Return "95 % interval"; only `sentence` names its kind."""
    return f"{percent(evidence.level.confidence)} interval"


def _span(evidence: Evidence) -> str:
    """Format the interval from the view of the first group: "3.8 to 7.9", "1.8 worse to 17.6 better"."""
    assert evidence.low is not None
    assert evidence.high is not None
    low = evidence.low
    high = evidence.high
    if low > 0.0 or high < 0.0:
        near, far = sorted((abs(low), abs(high)))
        return f"{_size(evidence, near)} to {_size(evidence, far)}"
    if evidence.question.sign < 0.0:
        low, high = high, low
    return f"{_size(evidence, low)} worse to {_size(evidence, high)} better"
