"""The sentences on what a claim leaves open: lost runs, and a collapse that no run showed. Pure."""

from __future__ import annotations

from esper_ab.stats.text import counted, percent
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.imputation import Imputed, recurs_in
from esper_ab.verdict.question import Lost, Question


def losses_cap(question: Question, again: Imputed, *, small: bool) -> str:
    """Explain why lost runs leave no decision. `small`: that the difference is, was the claim."""
    said = _losses(question, again.lost_a, again.lost_b)
    if again.mean is not None:
        return f"{said}; {_imputation(question, again)} overturns the decision."
    if small and not again.lost_a == again.lost_b == 1:
        return f"{said}; a difference is called small only where both groups lost as many, and at most one each."
    how = "--outcome-range" if question.recorded else "--worst"
    return f"{said}, and no worst outcome is declared that could stand for them ({how})."


def _losses(question: Question, lost_a: int, lost_b: int) -> str:
    def runs(count: int) -> str:
        return counted(count, "run") if count else "no run"

    were = "was" if max(lost_a, lost_b) == 1 and min(lost_a, lost_b) == 0 else "were"
    return f"{runs(lost_a)} of {question.a} and {runs(lost_b)} of {question.b} {were} lost"


def _imputation(question: Question, again: Imputed) -> str:
    given = ((question.a, again.given_a), (question.b, again.given_b))
    each = " and ".join(f"of {name} {question.design.value(value)}" for name, value in given if value is not None)
    return f"giving the lost runs {each}, which speaks most against it,"


def _cancelled(question: Question, lost: Lost) -> str:
    """Write how many runs are without a partner because the other one of their pair failed; "" for none."""
    counts = zip((question.a, question.b), lost.cancelled, strict=True)
    each = [f"{count} of {name}" for name, count in counts if count]
    if not each:
        return ""
    one = sum(lost.cancelled) == 1
    return f" With them {' and '.join(each)} {'was' if one else 'were'} cancelled or left without a partner."


def on_losses(evidence: Evidence) -> list[str]:
    lost, question = evidence.lost, evidence.question
    if not lost.replicates:
        return []
    said = f"{_losses(question, lost.a, lost.b)}.{_cancelled(question, lost)}"
    cause = recurs_in(question.a, question.b, lost)
    if cause is not None:
        said += f" Losses that recur in one group only count as caused by it: {cause}."
    if evidence.imputed is not None and evidence.imputed.mean is not None:
        outcome = "leaves the decision standing" if evidence.imputed.survives else "overturns the decision"
        imputation = _imputation(question, evidence.imputed)
        said += f" {imputation[0].upper()}{imputation[1:]} {outcome}."
    return [said[0].upper() + said[1:]]


def on_collapse(evidence: Evidence) -> list[str]:
    """Say what a claim could not have seen."""
    unseen, n = evidence.unseen, evidence.counted(evidence.used)
    if unseen is None:
        return []
    stands = "would" if unseen.survives else "would not"
    worst = evidence.design.value(unseen.worst)
    return [
        f"With {n}, a failure that hits up to {percent(round(unseen.rate, 2))} of a group's runs may have gone unseen. "
        f"The verdict {stands} survive one more {'run' if evidence.samples else 'pair with such a run,'} at the worst "
        f"outcome seen ({worst})."
    ]
