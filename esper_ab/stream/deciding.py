"""What the pairs of a candidate decide. Pure, so that anyone can repeat it from the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.wording import counted, significant
from esper_ab.stats.one_sided_looks import OneSidedLook
from esper_ab.stream.entries import Begun, Decided, Decision
from esper_ab.stream.progress import differences
from esper_ab.stream.question import StreamQuestion


def decide(
    question: StreamQuestion, candidate: Begun, look: int, pairs: Sequence[tuple[float, float]]
) -> Decided | None:
    """Return what the pairs of the first `look` seeds decide; None if the candidate goes on."""
    test = question.test(candidate.level)
    taken_look = test.at(look, differences(pairs, question.sign))
    is_last = look == test.looks[-1]
    if not (taken_look.crossed or taken_look.hopeless or is_last):
        return None
    decision: Decision = "undecided"
    if taken_look.crossed:
        decision = "accepted"
    elif taken_look.hopeless:
        decision = "rejected"
    mean, low, high = taken_look.mean, taken_look.low, taken_look.high
    interval = None
    if low is not None and high is not None:
        ends = (question.sign * low, question.sign * high)
        interval = (min(ends), max(ends))
    return Decided(
        number=candidate.number,
        decision=decision,
        reason=_reason(question, taken_look, decision, candidate.level, is_last=is_last),
        look=look,
        pairs=tuple(pairs),
        effect=None if mean is None else question.sign * mean,
        interval=interval,
        p=taken_look.p,
        signs_p=taken_look.signs_p,
        e_value=_e_value(taken_look, candidate.level),
    )


def _e_value(look: OneSidedLook, level: float) -> float:
    """Return the evidence for any shape or, of a test at a level, 1 / level if it claims something."""
    if look.evidence is not None:
        return look.evidence
    return 1.0 / level if look.crossed else 0.0


def _reason(question: StreamQuestion, look: OneSidedLook, decision: Decision, level: float, *, is_last: bool) -> str:
    """Return a sentence for people."""
    if look.mean is None:
        return "no pair has both outcomes"
    than_words = f"better by {significant(look.mean, 3)}" if look.mean > 0.0 else "not better"
    pairs_words = f"after {counted(look.pairs, 'pair')}"
    margin_words = f" the margin of {question.margin:g}" if question.margin else " 0"
    if decision == "rejected" and not is_last:
        return f"{than_words} {pairs_words}, unlikely to be shown above{margin_words} within {question.seeds} seeds"
    if look.evidence is not None:
        found_words = f"e-value {look.evidence:.3g}, {1.0 / level:.3g} required"
    else:
        found_words = f"p {max(look.p or 0.0, look.signs_p or 0.0):.2g}, {look.bound:.2g} required"
    shown_word = "shown" if decision == "accepted" else "not shown"
    return f"{than_words} {pairs_words}, {shown_word} above{margin_words} ({found_words})"
