"""The words of the claim that a group is not worse by the margin or more. They compute and decide nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable

from esper_ab.stats.text import p_beside, percent
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.level_words import names, opened

Size = Callable[[Evidence, float | None], str]  # writes the size of a difference, without sign and unit


def not_worse_headline(evidence: Evidence, relation: str, wins: str, size: Size) -> str:
    """Write the headline of NOT WORSE.

    `relation`: the estimate, as in "b is 0.3 points below a"; `wins`: in how many pairs, as ", in 9 of 16 pairs".
    """
    question = evidence.question
    a, b = names(question.items, question.a, question.b)
    return (
        f"{opened(question.items)}{a} is not worse than {b} by {evidence.design.margin_words} or more: "
        f"{relation}{wins}, and {limit_words(evidence, size)}."
    )


def margin_not_excluded(evidence: Evidence, size: Size) -> str:
    """Say how much worse the group may be, as the reason why it is not shown to be not worse."""
    limit = evidence.design.outcome.difference(size(evidence, _limit(evidence)))
    margin = evidence.design.margin_words
    return f"it may be up to {limit} worse ({_confidence(evidence)}), which does not exclude the margin of {margin}"


def not_worse_test(evidence: Evidence) -> str:
    """Write the one-sided test at the margin with its bound, as in "one-sided p = 0.012 (0.031 required)"."""
    look = evidence.last_look
    if look is None or look.non_inferiority is None:
        return "no test"
    not_worse = look.non_inferiority
    if look.bound_e is not None:
        return f"one-sided, at half the e-value of {look.bound_e:g}"
    if not_worse.p is None or not_worse.bound_p is None:
        return "by its interval"
    p_words, bound = p_beside(not_worse.p, not_worse.bound_p)
    return f"one-sided p {p_words} ({bound} required)"


def limit_words(evidence: Evidence, size: Size) -> str:
    """Write the limit on the worse side, as in "at most 1.1 points worse (95 % one-sided limit)"."""
    return f"{_worse(evidence, size)} ({_confidence(evidence)})"


def _worse(evidence: Evidence, size: Size) -> str:
    limit = _limit(evidence)
    words = evidence.design.outcome.difference(size(evidence, limit))
    if limit < 0.0:
        return f"at most {words} worse"
    return f"at least {words} better"


def _limit(evidence: Evidence) -> float:
    look = evidence.last_look
    assert look is not None
    assert look.non_inferiority is not None
    limit = look.non_inferiority.worse_limit(evidence.question.sign)
    assert limit is not None
    return limit


def _confidence(evidence: Evidence) -> str:
    return f"{percent(1.0 - evidence.question.alpha)} one-sided limit"
