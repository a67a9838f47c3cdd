"""The headline of a comparison, for a reader who reads nothing else: the answer, its size and its certainty.

This module only formats text. The comparison's first group is named first, as in the verdict and in every number. The
headline never claims more than the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.contracts.wording import capital, counted, named
from esper_ab.design.pairs_needed import MOST_NAMED
from esper_ab.stats.item_difference import ItemDifference
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import outcomes
from esper_ab.stats.text import digits_apart, percent, signed
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.guardrail_words import guardrail_suffix
from esper_ab.verdict.identical_words import identical_headline
from esper_ab.verdict.level_words import about, closing, names, opened
from esper_ab.verdict.not_worse_words import margin_not_excluded, not_worse_headline
from esper_ab.verdict.question import AskedItems
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.shapes import tails_beyond_margin
from esper_ab.verdict.undecided_reason import Undecided, why_undecided
from esper_ab.verdict.verdict import CLAIMS, DIFFERENT, Verdict

# The end of "Not decided: ..., but ..."; `_worded` words or completes those that need a fact of the comparison.
_REASONS = {
    Undecided.DRIFT: "the differences drift from pair to pair",
    Undecided.LOST_SCORES: "the lost scores could change the answer",
    Undecided.AUDIT: "the audit allows no verdict",
    Undecided.LOST_RUNS: "the lost runs could change the answer",
    Undecided.LOST_WITHOUT_WORST: "the lost runs could change the answer; no worst outcome is declared for them",
    Undecided.BASELINE: "their outcomes are not clearly better than those of a group that learns nothing",
    Undecided.NO_PAIR: "no pair was complete at the last look",
    Undecided.FEW_PAIRS: f"a verdict needs at least {LEAST_PAIRS} pairs",
    Undecided.FUTILE: "it was stopped for futility: a difference of the margin had become unlikely",
    Undecided.WITHDRAWN: "the last look does not confirm what an earlier one decided",
    Undecided.NO_SPREAD: "too little varies between the pairs for any test",
    Undecided.NO_INTERVAL: "these pairs give no interval",
    Undecided.TOO_EARLY: "it is too early to call the difference smaller than the margin",
    Undecided.MARGIN_INSIDE: "the groups may still be worse by the margin",
    Undecided.SHAPE: "the interval that holds for any shape (--shape any) includes 0; the t-test alone excludes it",
    Undecided.ZERO_INSIDE: "the interval includes 0",
    Undecided.NO_LOOK: "the first planned look is still to come",
    Undecided.GUARDRAILS: "a guardrail is not shown yet to hold, so the seeds go on to the next look",
    Undecided.BOUND: "the test has not reached its bound",
}


def headline(evidence: Evidence) -> str:
    """Write the answer in one plain sentence: the difference, its size and its certainty.

    For runs done elsewhere, the sentence ends with the unit that was counted, because only the author of the runs knows
    whether rows are runs.
    """
    answer = _answer(evidence)
    if evidence.guardrails:
        answer = f"{answer.removesuffix('.')}{guardrail_suffix(evidence)}."
    question = evidence.question
    if question.items is not None:
        return f"{answer.removesuffix('.')}{closing(_counted_items(evidence, question.items), question.a, question.b)}"
    unit = question.unit
    if not unit or not evidence.used:
        return answer
    a, b = map(len, outcomes(evidence.samples or evidence.pairs[: evidence.used]))
    if a == b:
        counts = f"{counted(a, unit)} per group"
    else:
        counts = f"{counted(a, unit)} of {question.a} and {b} of {question.b}"
    return f"{answer.removesuffix('.')}; {counts}."


def _counted_items(evidence: Evidence, items_question: AskedItems) -> AskedItems:
    """Return the items with the runs that the numbers rest on, which may be fewer than were made."""
    if items_question.level == "checkpoints":
        return items_question
    a, b = map(len, outcomes(evidence.samples or evidence.pairs[: evidence.used]))
    return msgspec.structs.replace(items_question, runs_a=a, runs_b=b)


def _answer(evidence: Evidence) -> str:
    verdict = evidence.verdict
    if verdict is Verdict.INCONCLUSIVE:
        return _undecided(evidence)
    if verdict is Verdict.EQUIVALENT:
        return _equivalent(evidence)
    if verdict is Verdict.NOT_WORSE:
        return not_worse_headline(evidence, _observed_relation(evidence), _wins(evidence), _size)
    if verdict in DIFFERENT:
        return _decided(evidence)
    if verdict is Verdict.NO_INFERENCE and evidence.estimate is not None:
        few_words = evidence.worded(f"Too few {_scarce(evidence)} to decide{_unfinished_suffix(evidence)}")
        few_words += about(evidence.question.items)
        return (
            f"{few_words} {_needed(evidence)}: "
            f"{_observed_relation(evidence)}{_few_interval(evidence)}{_wins(evidence)}."
        )
    return headline_of([(evidence.question.a, evidence.question.b)], evidence)


def headline_of(pairs: Sequence[tuple[str, str]], evidence: Evidence) -> str:
    """Write one sentence for several comparisons that are `alike`, without numbers of individual comparisons.

    `evidence`: the evidence on any one of the comparisons.
    """
    groups = named(pairs)
    verdict = evidence.verdict
    is_single = len(pairs) == 1
    if verdict is Verdict.BLOCKED:
        blocked_words = "comparison" if is_single else "comparisons; its table says why"
        return f"No answer for {groups}: the audit blocks the {blocked_words}."
    if verdict is Verdict.NO_INFERENCE:
        if evidence.data:
            few_words = evidence.worded(f"Too few {_scarce(evidence)}")
            return (
                f"{few_words} to decide{about(evidence.question.items)} about {groups}: {evidence.sample.least} are "
                "needed."
            )
        lacking_words = "no pair is complete" if evidence.samples is None else "one has no run"
        return f"Nothing can be said about {groups}: {lacking_words}."
    if verdict is Verdict.IDENTICAL:
        return identical_headline(groups if is_single else capital(groups), evidence)
    reason = why_undecided(evidence)
    if reason is Undecided.ZERO_INSIDE:
        words = "the intervals include 0"
    else:
        words = _worded(evidence, reason)
    items_words = about(evidence.question.items)
    return (
        f"Not decided{_unfinished_suffix(evidence)}{items_words}{' about' if items_words else ' for'} {groups}: "
        f"{words}."
    )


def alike(evidence: Evidence) -> tuple[str, ...]:
    """Return the key by which `headline_of` groups comparisons in one sentence; the key () is never grouped."""
    if evidence.verdict in CLAIMS or guardrail_suffix(evidence):
        return ()
    return (evidence.verdict, headline_of([("a", "b")], evidence))


def _equivalent(evidence: Evidence) -> str:
    """Say that a difference is small, and that a large one is ruled out only if no rare failure can hide one."""
    question = evidence.question
    margin = evidence.design.margin_words
    a, b = names(question.items, question.a, question.b)
    equivalent = f"{opened(question.items)}{a} and {b} are equivalent within {margin}: {_observed_relation(evidence)}"
    tails = [tail for tail, _ in tails_beyond_margin(evidence)]
    if tails:
        counts = " and ".join(str(tail.count) for tail in tails)
        pairs = evidence.worded("pairs")
        likeness_words = f"if {pairs} like {counts} of these {evidence.used} are no more frequent than here"
        return f"{equivalent}{_bracketed(evidence, f', within the margin, {likeness_words}')}."
    if evidence.rules_out_margin:
        return f"{equivalent}{_bracketed(evidence)}, and a difference of {margin} or more is ruled out."
    return f"{equivalent}{_bracketed(evidence, ', within the margin')}."


def _decided(evidence: Evidence) -> str:
    question = evidence.question
    ahead = evidence.progress.direction * question.sign > 0
    direction_words = "better" if ahead else "worse"
    margin = _margin(evidence)
    is_small = evidence.verdict in (Verdict.BETTER_BELOW_MARGIN, Verdict.WORSE_BELOW_MARGIN)
    if is_small:
        size_words = f", but by less than {margin}: by"
        interval = _bracketed(evidence)
    else:
        size_words = " by"
        interval = _bracketed(evidence, f", {_side_of_margin(evidence)} {margin}")
    size = evidence.design.outcome.difference(_size(evidence))
    a, b = names(question.items, question.a, question.b)
    return f"{opened(question.items)}{a} is {direction_words} than {b}{size_words} {size}{interval}{_wins(evidence)}."


def _margin(evidence: Evidence) -> str:
    """Name the margin, as in "the margin of 2 points"; for a mean over tasks, its unit is the margin."""
    words = evidence.design.margin_words
    return words if evidence.question.task == MEAN else f"the margin of {words}"


def _side_of_margin(evidence: Evidence) -> str:
    """Return where the interval lies, with 0 outside it: a difference inside the margin is not worth acting on."""
    low = evidence.low or 0.0
    high = evidence.high or 0.0
    margin = evidence.design.margin
    if max(low, -high) > margin:
        return "beyond"
    if max(-low, high) > margin:
        return "partly within"
    return "within"


def _undecided(evidence: Evidence) -> str:
    reason = why_undecided(evidence)
    items_words = about(evidence.question.items)
    if evidence.estimate is None:
        return f"Not decided{_unfinished_suffix(evidence)}{items_words}: {_worded(evidence, reason)}."
    if evidence.constant:
        answer = f"{evidence.constant}, so no test of a mean applies"
        seeds = "" if evidence.about_checkpoints else "; this is the answer for these seeds"
        return f"Not decided{_unfinished_suffix(evidence)}{items_words}: {answer}{seeds}."
    looks = _relation(evidence, "look level", "looks", ("better than", "worse than"), evidence.question.sign)
    reason_words = f"{_worded_with_numbers(evidence, reason)}{_would_decide(evidence, reason)}"
    return f"Not decided{_unfinished_suffix(evidence)}{items_words}: {looks}{_wins(evidence)}, but {reason_words}."


def _would_decide(evidence: Evidence, reason: Undecided) -> str:
    """Say how many pairs would show a difference of the margin, if more pairs are needed for a decision."""
    reasons_for_more_pairs = (Undecided.MARGIN_INSIDE, Undecided.SHAPE, Undecided.ZERO_INSIDE, Undecided.BOUND)
    if reason not in reasons_for_more_pairs or not evidence.progress.finished:
        return ""
    new_plan_need = evidence.pairs_anew
    extension_need = evidence.pairs_needed
    pairs = min(
        (pairs_needed.pairs for pairs_needed in (extension_need, new_plan_need) if pairs_needed is not None), default=0
    )
    if not evidence.used < pairs <= MOST_NAMED:
        return ""
    fewer_anew = new_plan_need is not None and extension_need is not None and new_plan_need.pairs < extension_need.pairs
    plan_words = " in a new plan" if fewer_anew else ""
    return f"; about {evidence.worded(f'{pairs} pairs')}{plan_words} would show {evidence.aim}"


def _worded(evidence: Evidence, reason: Undecided) -> str:
    """Word a reason without numbers of the interval, as the end of "Not decided: ..., but ..."."""
    if reason is Undecided.DRIFT and evidence.progress.later:
        later_count = len(evidence.progress.later)
        return (
            f"the differences drift over all {evidence.counted(evidence.used + later_count)}, {later_count} of them "
            "after that look"
        )
    if reason is Undecided.LOST_WITHOUT_WORST:
        return f"{_REASONS[reason]} ({evidence.question.worst_flag})"
    if reason is Undecided.SIGNS:
        return evidence.lacking_signs
    return _REASONS[reason]


def _worded_with_numbers(evidence: Evidence, reason: Undecided) -> str:
    """Word a reason for a comparison that has an estimate."""
    if reason is Undecided.ZERO_INSIDE:
        return f"the {_interval(evidence)}, {_span(evidence)}, includes 0"
    if reason is Undecided.MARGIN_INSIDE:
        return margin_not_excluded(evidence, _size)
    if reason is Undecided.TOO_EARLY and evidence.design.non_inferiority is not None:
        return f"calling it not worse takes {evidence.small_from}"
    if reason is Undecided.SHAPE:
        interval = f"the {_interval(evidence)} that holds for any shape, {_span(evidence)}"
        return f"{interval}, includes 0; the t-test alone excludes it"
    if reason is Undecided.TOO_EARLY:
        return f"calling the difference smaller than the margin takes {evidence.small_from}"
    if reason is Undecided.NO_SPREAD and evidence.stuck is not None:
        count, runs, value = evidence.stuck
        rows = evidence.question.row
        stuck_words = f"{count} of {runs} {rows}s have the outcome {evidence.design.value(value)}"
        return f"{stuck_words}, which leaves too little spread for any test"
    return evidence.worded(_worded(evidence, reason))


def _scarce(evidence: Evidence) -> str:
    """Name what there is too little of: pairs, runs, or independent items."""
    sample = evidence.sample
    items_question = evidence.question.items
    if items_question is None or sample.kind == "pairs":
        return "pairs"
    if sample.kind == "runs":
        return "runs"
    has_own_clusters = isinstance(evidence.effect, ItemDifference) and evidence.effect.clusters < evidence.effect.items
    return f"independent {items_question.unit}s" if has_own_clusters else f"{items_question.unit}s"


def _needed(evidence: Evidence) -> str:
    """Say how large the sample is, and how large it must be."""
    sample = evidence.sample
    size = evidence.used if sample.kind == "pairs" else sample.size
    group_words = " per group" if sample.kind == "runs" else ""
    return f"({size}{group_words}; {sample.least} needed)"


def _few_interval(evidence: Evidence) -> str:
    """Return the interval of a comparison with items and too small a sample for a verdict; "" without items."""
    if evidence.items is None or evidence.low is None or evidence.high is None:
        return ""
    limits = sorted((evidence.low, evidence.high))
    digits = evidence.design.digits
    return f" ({_interval(evidence)} {signed(limits[0], digits)} to {signed(limits[1], digits)})"


def _unfinished_suffix(evidence: Evidence) -> str:
    return "" if evidence.progress.finished else " yet"


def _observed_relation(evidence: Evidence) -> str:
    """Return "a is 1.2 points above b": the observation alone."""
    return _relation(evidence, "are level", "is", ("above", "below"), 1.0)


def _relation(evidence: Evidence, equal_words: str, verb: str, relation_words: tuple[str, str], sign: float) -> str:
    """Say by how much the first group is ahead of the second, or behind it; `sign` is -1.0 if lower is ahead."""
    question = evidence.question
    estimate = evidence.estimate
    assert estimate is not None
    a, b = names(question.items, question.a, question.b)
    if _equal(evidence):
        return f"{a} and {b} {equal_words}"
    size = question.design.outcome.difference(_size(evidence))
    ahead_words, behind_words = relation_words
    relation = ahead_words if estimate * sign > 0.0 else behind_words
    return f"{a} {verb} {size} {relation} {b}"


def _equal(evidence: Evidence) -> bool:
    return evidence.estimate is None or abs(evidence.estimate) < 0.5 * 10.0**-evidence.design.digits


def _size(evidence: Evidence, value: float | None = None) -> str:
    """Format `value`, by default the estimate, without sign, as in "7.9"; use more digits if rounding hides something.

    There is one decimal less than elsewhere, unless a number would keep only one significant digit. There are more
    decimals if the interval would shrink to one number, or if a limit would seem to lie on 0 or on the margin.
    """
    if value is None:
        value = evidence.estimate or 0.0
    numbers = [number for number in (evidence.estimate, evidence.low, evidence.high) if number is not None]
    digits = evidence.design.digits
    if min(map(abs, numbers), default=0.0) >= 10.0 ** (2 - digits):
        digits -= 1
    return f"{abs(value):.{_digits_that_hide_nothing(evidence, digits)}f}"


def _digits_that_hide_nothing(evidence: Evidence, digits: int) -> int:
    """Return at least `digits` digits: as many as keep the interval and a claim's estimate off 0 and the margin."""
    margin = evidence.design.margin
    marks = (-margin, 0.0, margin)
    distinctions = list[tuple[tuple[float, ...], tuple[float, ...]]]()
    if evidence.low is not None and evidence.high is not None:
        middle = (evidence.low + evidence.high) / 2.0
        distinctions.append(((evidence.low, evidence.high), (*marks, middle)))
    if evidence.verdict in CLAIMS and evidence.estimate is not None:
        distinctions.append(((evidence.estimate,), marks))
    while True:
        needed_digits = max(
            (digits_apart(numbers, marks_off, digits) for numbers, marks_off in distinctions), default=digits
        )
        if needed_digits <= digits:
            return digits
        digits = needed_digits  # digits that keep one number on its side may move another one across


def _wins(evidence: Evidence) -> str:
    """Return ", in 5 of 6 pairs": how many differences have the sign of the estimate, and how many pairs tie."""
    estimate = evidence.estimate
    used_pairs = evidence.pairs[: evidence.used]
    if len(used_pairs) < 2 or estimate is None or _equal(evidence):
        return ""
    wins_of_a = int(np.sum(used_pairs.a > used_pairs.b))
    wins_of_b = int(np.sum(used_pairs.a < used_pairs.b))
    ties = len(used_pairs) - wins_of_a - wins_of_b
    wins_of_leader = wins_of_a if estimate > 0 else wins_of_b
    ties_words = f" ({ties} tied)" if ties else ""
    return f", in {wins_of_leader} of {evidence.counted(len(used_pairs))}{ties_words}"


def _bracketed(evidence: Evidence, suffix: str = "") -> str:
    if evidence.low is None or evidence.high is None:
        return ""
    return f" ({_interval(evidence)} {_span(evidence)}{suffix})"


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
        near_limit, far_limit = sorted((abs(low), abs(high)))
        return f"{_size(evidence, near_limit)} to {_size(evidence, far_limit)}"
    if evidence.question.sign < 0.0:
        low, high = high, low
    return f"{_size(evidence, low)} worse to {_size(evidence, high)} better"
