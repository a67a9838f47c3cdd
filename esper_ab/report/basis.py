"""What the answer of a report rests on, in a few sentences: runs, rule and audit. Pure."""

from __future__ import annotations

from esper_ab.contracts.wording import counted, listed
from esper_ab.design.design import rule
from esper_ab.report.content import Content


def basis(content: Content) -> tuple[str, ...]:
    """Describe the basis of the answer in a few sentences: runs, rule and audit."""
    sentences = []
    runs = _runs_and_differences(content)
    if runs:
        sentences.append(runs)
    if content.comparisons:
        sentences.append(f"Rule, declared before the first run: {rule(content.design)}.")
    sentences.append(_audit(content))
    return tuple(sentences)


def _runs_and_differences(content: Content) -> str:
    plan = content.history.plan
    sentences = []
    if content.state.complete:
        sentences.append(content.state.sentence)
    if plan.differences:
        settings = _shortened([difference.key for difference in plan.differences])
        sentences.append(f"The groups differ in {settings}.")
    if plan.experiment.unpaired:
        sentences.append("The runs of a seed share no random numbers.")
    return " ".join(sentences)


def _shortened(keys: list[str]) -> str:
    """List settings, but no more than three by name."""
    if len(keys) <= 3:
        return listed(keys)
    return f"{', '.join(keys[:3])} and {len(keys) - 3} more settings"


def _audit(content: Content) -> str:
    findings = content.analysis.findings
    serious_sentences = [finding.sentence for finding in findings if finding.weight != "notes"]
    if serious_sentences:
        return f"Audit: {' '.join(serious_sentences)}"
    incidents = ""
    if content.history.incidents:
        incidents = f"; {counted(len(content.history.incidents), 'incident')}"
    if not findings:
        return f"Audit: nothing but the groups' settings could explain a difference{incidents}."
    return f"Audit: no objection; {counted(len(findings), 'remark')}{incidents}."
