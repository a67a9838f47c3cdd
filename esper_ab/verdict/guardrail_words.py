"""The words on the guardrails of a comparison. They compute and decide nothing. Pure."""

from __future__ import annotations

from esper_ab.contracts.wording import counted, listed
from esper_ab.design.guardrails import Guardrail
from esper_ab.stats.text import digits_for
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.guardrails import GuardrailResult, admits_guardrails


def guardrail_suffix(evidence: Evidence) -> str:
    """Return how a headline ends after which guardrails are tested: the first that does not hold, or all; else ""."""
    results = evidence.guardrails
    if not results or not admits_guardrails(evidence.design, evidence.verdict):
        return ""
    for number, result in enumerate(results, start=1):
        if result.result == "not shown":
            order = f"guardrail {number} of {len(results)}"
            return f"; but {_failing_words(evidence, result)} ({order})"
    labels = listed([_label(result) for result in results])
    verb = "holds" if len(results) == 1 else "hold"
    return f"; {counted(len(results), 'guardrail')} {verb}: {labels}"


def _label(result: GuardrailResult) -> str:
    """Name the measure, and the pairs of equal records in which it is no number."""
    label = result.guardrail.measure.label
    left_out = result.look.left_out
    return f"{label} ({counted(left_out, 'pair')} without a value left out)" if left_out else label


def _failing_words(evidence: Evidence, result: GuardrailResult) -> str:
    """Say that a guardrail was not shown to hold, and how much worse the measure may be."""
    guardrail = result.guardrail
    look = result.look
    a, b = evidence.question.a, evidence.question.b
    claim = f"{guardrail.measure.label} of {a} is not shown to be no worse by {guardrail.margin_words}"
    without_value = [f"{counted(runs, 'run')} of {group}" for runs, group in ((look.lost, a), (look.lost_b, b)) if runs]
    if without_value:
        left_out = ""
        if look.left_out:
            verb = "is" if look.left_out == 1 else "are"
            left_out = f", so {counted(look.left_out, 'pair')} {verb} left out"
        return f"{claim}: {listed(without_value)} left no value{left_out}"
    if look.worse_at_most is None or look.worse is None:
        return claim
    return f"{claim}: {worse_words(guardrail, look.worse)}, up to {worse_words(guardrail, look.worse_at_most)}"


def worse_words(guardrail: Guardrail, worse: float) -> str:
    """Write how much worse a measure is, as in "12 % higher", "3.10 s lower"."""
    size = size_words(guardrail, abs(worse))
    if worse == 0.0:
        return "the same"
    is_higher = (worse > 0.0) == (guardrail.measure.better == "lower")
    return f"{size} {'higher' if is_higher else 'lower'}"


def size_words(guardrail: Guardrail, size: float) -> str:
    """Write a size in the unit of the guardrail's margin, as in "12.3 %", "3.10 s"."""
    if guardrail.relative:
        return f"{100.0 * size:.{digits_for(100.0 * guardrail.margin)}f} %"
    return guardrail.measure.difference(f"{size:.{digits_for(guardrail.margin)}f}")
