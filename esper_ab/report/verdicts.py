"""The verdicts of a report, one card per comparison."""

from __future__ import annotations

from statistics import fmean

from esper_ab.analysis.analyse import task_and_budget
from esper_ab.contracts.wording import counted
from esper_ab.plan.text import ALONE
from esper_ab.report.content import Content
from esper_ab.report.document import Paragraphs, Verdicts
from esper_ab.report.tables.comparison import cards_of


def verdicts(content: Content) -> Verdicts:
    """Return the verdicts in the order of the design; many comparisons are grouped by verdict."""
    cards, shared_warnings = cards_of(content.comparisons)
    return Verdicts(cards, task_and_budget(content.history), shared_warnings)


def alone(content: Content) -> tuple[Paragraphs, ...]:
    """Return the answer of an experiment with one group: its mean, and that nothing is compared."""
    if content.design.comparisons or len(content.groups) != 1:
        return ()
    (group,) = content.groups
    outcomes = [run.outcome for run in content.of_group(group) if run.outcome is not None]
    if not outcomes:
        return (Paragraphs((ALONE,)),)
    mean = content.design.value(fmean(outcomes))
    words = f"{group}: {content.design.outcome.label} {mean}, mean of {counted(len(outcomes), 'run')}. {ALONE}"
    return (Paragraphs((words,)),)
