"""The audit: everything besides the groups' settings that could explain a difference between groups. Pure.

Each finding is one sentence with its numbers and a weight: it blocks verdicts, caps them, or is only noted. A finding
about two groups names both and covers the replicates that their comparison uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.analysis import audit_comparisons, audit_conduct, audit_setup, audit_updates
from esper_ab.analysis.baseline import baseline_findings
from esper_ab.analysis.kind import FindingsKind
from esper_ab.analysis.observe import ComparedPairs
from esper_ab.analysis.reused_runs import reuse_findings
from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import outcome_of
from esper_ab.verdict.finding import Finding


def audit(history: History, pairs: ComparedPairs) -> Iterator[Finding]:
    """Audit everything recorded so far; `pairs`: the pairs of every comparison."""
    yield from audit_comparisons.comparison_findings(history, pairs)
    yield from audit_setup.setup_findings(history)
    yield from audit_conduct.conduct_findings(history)
    yield from reuse_findings(history)
    yield from audit_updates.update_findings(history)
    yield from baseline_findings(history, pairs)
    yield from of_kind(history.plan.kind, FindingsKind).findings(history, pairs)
    yield from _outcome_findings(history)


def _outcome_findings(history: History) -> Iterator[Finding]:
    for group in history.groups:
        runs = [run.ref.name for run in history.of_group(group) if _ended_without_number(history, run)]
        if runs:
            sentence = f"The outcome of {', '.join(runs)} is not a finite number: the record is damaged or foreign."
            yield Finding("outcome", "blocks", (group,), sentence)


def _ended_without_number(history: History, run: RunHistory) -> bool:
    if run.evaluation is None or run.lost:
        return False
    return outcome_of(run, history.design.outcome_over) is None
