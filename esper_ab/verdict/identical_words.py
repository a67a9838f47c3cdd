"""The words on groups whose records all agree. They compute and decide nothing. Pure."""

from __future__ import annotations

from esper_ab.contracts.wording import n_pairs
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.question import Question


def identical_headline(groups: str, evidence: Evidence) -> str:
    """Write the headline of IDENTICAL on `groups`, which are named."""
    question = evidence.question
    if question.same_computation:
        return f"{groups} are the same computation: all records agree, so there is nothing to compare."
    n = len(evidence.pairs)
    pairs_words = "the one pair" if n == 1 else f"all {n_pairs(n)}"
    effect_words = "had no effect on these runs" if question.other_code else "had no effect"
    return (
        f"{groups} did the same in {pairs_words}: all records agree, so the {_what_differs(question)} {effect_words}."
    )


def identical_reason(question: Question) -> str:
    """Say in a sentence, after a colon, why all records agree."""
    if question.same_computation:
        return "the same computation."
    if not question.other_code:
        return (
            "their settings differ, but these runs never depended on the difference. Longer training may separate "
            "them, or this task never uses the differing settings."
        )
    differing_words = "code differs" if question.same_settings else "code and settings differ"
    return (
        f"their {differing_words}, but these runs never depended on the difference. Longer training may separate them, "
        "or this task never uses what differs."
    )


def identical_step(question: Question) -> str:
    """Suggest in a sentence what to do after runs on which a difference had no effect."""
    if question.other_code and question.same_settings:
        return "The change of code has had no effect: train longer if it should have one."
    differing_words = "code and settings" if question.other_code else "settings"
    return f"The {differing_words} that differ have had no effect: train longer if they should have one."


def _what_differs(question: Question) -> str:
    if not question.other_code:
        return "differing settings"
    return "change of code" if question.same_settings else "differing code and settings"
