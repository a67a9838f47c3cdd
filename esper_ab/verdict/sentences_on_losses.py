"""The sentences on what a claim leaves open: lost runs, and a collapse that no run showed. Pure."""

from __future__ import annotations

from esper_ab.contracts.wording import counted
from esper_ab.stats.text import percent
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.imputation import Imputed, recurs_in
from esper_ab.verdict.question import Lost, Question


def losses_cap(question: Question, again: Imputed, *, small: bool) -> str:
    """Explain why lost runs prevent a decision. `small`: the claim was that the difference is small."""
    lost = _losses(question, again.lost_a, again.lost_b)
    if again.mean is not None:
        return f"{lost}; {_imputation(question, again)} overturns the decision."
    if small and not again.lost_a == again.lost_b == 1:
        return (
            f"{lost}; a small difference is claimed only if both groups lost equally many {question.row}s, at most one "
            "each."
        )
    return f"{lost}, and no worst outcome is declared for them ({question.worst_flag})."


def _losses(question: Question, lost_a: int, lost_b: int) -> str:
    were = "was" if sorted((lost_a, lost_b)) == [0, 1] else "were"
    row = question.row
    return f"{_runs(lost_a, row)} of {question.a} and {_runs(lost_b, row)} of {question.b} {were} lost"


def _runs(count: int, row: str) -> str:
    return counted(count, row) if count else f"no {row}"


def _imputation(question: Question, again: Imputed) -> str:
    given = ((question.a, again.given_a), (question.b, again.given_b))
    each = ", ".join(f"{name} {question.design.value(value)}" for name, value in given if value is not None)
    return f"giving lost {question.row}s the least favourable outcomes ({each})"


def _cancelled(question: Question, lost: Lost) -> str:
    """Count the runs that have no partner because the other run of their pair failed; "" if there are none."""
    counts = zip((question.a, question.b), lost.cancelled, strict=True)
    each = [f"{count} of {name}" for name, count in counts if count]
    if not each:
        return ""
    were = "was" if sum(lost.cancelled) == 1 else "were"
    return f" As a result, {' and '.join(each)} {were} cancelled or left without a partner."


def loss_caveats(evidence: Evidence) -> list[str]:
    lost = evidence.lost
    question = evidence.question
    if not lost.replicates:
        return []
    caveat = f"{_losses(question, lost.a, lost.b)}.{_cancelled(question, lost)}"
    cause = recurs_in(question.a, question.b, lost)
    if cause is not None:
        caveat += f" Losses recur in {cause} only, so they count as caused by it."
    imputed = evidence.imputed
    if imputed is not None and imputed.mean is not None:
        outcome = "leaves the decision standing" if imputed.survives else "overturns the decision"
        caveat += f" {_capitalised(_imputation(question, imputed))} {outcome}."
    return [_capitalised(caveat)]


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def collapse_caveats(evidence: Evidence) -> list[str]:
    """Say which failures a claim could have missed."""
    unseen = evidence.unseen
    n = evidence.counted(evidence.used)
    if unseen is None:
        return []
    missed = f"With {n}, a failure in up to {percent(round(unseen.rate, 2))} of a group's runs may be unseen"
    if unseen.worst is None:
        flag = evidence.question.worst_flag
        return [f"{missed}; its effect is unknown, because no worst outcome is declared ({flag})."]
    stands = "would" if unseen.survives else "would not"
    one_more = "run" if evidence.samples else "pair with such a run,"
    source = "declared" if unseen.worst == evidence.design.worst else "seen"
    worst = f"the worst outcome {source} ({evidence.design.value(unseen.worst)})"
    return [f"{missed}. The verdict {stands} survive one more {one_more} at {worst}."]
