"""The sentences on what a claim leaves open: lost runs, and a collapse that no run showed. Pure."""

from __future__ import annotations

from esper_ab.contracts.wording import counted
from esper_ab.stats.text import percent
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.imputation import Imputed, recurs_in
from esper_ab.verdict.question import Lost, Question
from esper_ab.verdict.verdict import Verdict


def losses_cap(question: Question, retest: Imputed, *, is_small: bool) -> str:
    """Explain why lost runs prevent a decision. `is_small`: the claim was that the difference is small."""
    losses_words = _losses(question, retest.lost_a, retest.lost_b)
    if retest.mean is not None:
        return f"{losses_words}; {_imputation(question, retest)} overturns the decision."
    if is_small and not retest.lost_a == retest.lost_b == 1:
        return (
            f"{losses_words}; a small difference is claimed only if both groups lost equally many {question.row}s, at "
            "most one "
            "each."
        )
    return f"{losses_words}, and no worst outcome is declared for them ({question.worst_flag})."


def _losses(question: Question, lost_a: int, lost_b: int) -> str:
    verb = "was" if sorted((lost_a, lost_b)) == [0, 1] else "were"
    row = question.row
    return f"{_runs(lost_a, row)} of {question.a} and {_runs(lost_b, row)} of {question.b} {verb} lost"


def _runs(count: int, row: str) -> str:
    return counted(count, row) if count else f"no {row}"


def _imputation(question: Question, retest: Imputed) -> str:
    imputed_values = ((question.a, retest.given_a), (question.b, retest.given_b))
    group_words = ", ".join(
        f"{name} {question.design.value(value)}" for name, value in imputed_values if value is not None
    )
    return f"giving lost {question.row}s the least favourable outcomes ({group_words})"


def _cancelled(question: Question, losses: Lost) -> str:
    """Count the runs that have no partner because the other run of their pair failed; "" if there are none."""
    counts = zip((question.a, question.b), losses.cancelled, strict=True)
    group_words = [f"{count} of {name}" for name, count in counts if count]
    if not group_words:
        return ""
    verb = "was" if sum(losses.cancelled) == 1 else "were"
    return f" As a result, {' and '.join(group_words)} {verb} cancelled or left without a partner."


def loss_caveats(evidence: Evidence) -> list[str]:
    losses = evidence.lost
    question = evidence.question
    if not losses.replicates:
        return []
    caveat = f"{_losses(question, losses.a, losses.b)}.{_cancelled(question, losses)}"
    cause = recurs_in(question.a, question.b, losses)
    if cause is not None:
        caveat += f" Losses recur in {cause} only, so they count as caused by it."
    imputation = evidence.imputed
    if imputation is not None and imputation.mean is not None:
        outcome = "leaves the decision standing" if imputation.survives else "overturns the decision"
        caveat += f" {_capitalised(_imputation(question, imputation))} {outcome}."
    return [_capitalised(caveat)]


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def collapse_caveats(evidence: Evidence) -> list[str]:
    """Say which failures a claim could have missed."""
    unseen_collapse = evidence.unseen
    n = evidence.counted(evidence.used)
    if unseen_collapse is None:
        return []
    missed_words = (
        f"With {n}, a failure in up to {percent(round(unseen_collapse.rate, 2))} of a group's runs may be unseen"
    )
    if unseen_collapse.worst is None:
        flag = evidence.question.worst_flag
        sentence = f"{missed_words}; its effect is unknown, because no worst outcome is declared ({flag})."
        if evidence.verdict is Verdict.NOT_WORSE:
            sentence += f" If {evidence.question.a} is worse only through such failures, this verdict is likely, too."
        return [sentence]
    modal_verb = "would" if unseen_collapse.survives else "would not"
    pair_words = "run" if evidence.samples else "pair with such a run,"
    source = "declared" if unseen_collapse.worst == evidence.design.worst else "seen"
    worst_words = f"the worst outcome {source} ({evidence.design.value(unseen_collapse.worst)})"
    return [f"{missed_words}. The verdict {modal_verb} survive one more {pair_words} at {worst_words}."]
