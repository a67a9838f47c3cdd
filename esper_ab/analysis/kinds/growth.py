"""What an analysis adds for growth: findings on baselines and bare hosts, and what their questions cover."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.analysis.conduct import evaluated_envs
from esper_ab.analysis.growth_baseline import baseline_findings
from esper_ab.analysis.kinds import AnalysisKind
from esper_ab.analysis.observe import Pairs
from esper_ab.journal.fold import History
from esper_ab.settings.policy_bias import starts
from esper_ab.verdict.finding import Finding

_SIZE = "host_params"


def _findings(history: History, pairs: Pairs) -> Iterator[Finding]:
    yield from baseline_findings(history, pairs)
    runs = history.runs.values()
    trained = {size for run in runs for size in run.columns.measure(_SIZE) if size == size}  # false for NaN
    sizes = trained | {env.measures[_SIZE] for run in runs for env in evaluated_envs(run)}
    if len(sizes) > 1:
        numbers = ", ".join(f"{size:g}" for size in sorted(size for size in sizes if size is not None))
        yield Finding(
            "data",
            "blocks",
            (),
            f"The bare hosts had different numbers of parameters ({numbers}): not one task.",
        )


def _scope(history: History) -> str:
    """Describe the initial bias of the op head, which determines the preferences of an untrained policy."""
    groups = history.plan.experiment.groups
    if not any(group.settings.has_policy for group in groups):
        return ""
    begin = starts(groups)
    return f"start {'by group' if len(begin) > 1 else next(iter(begin), '')}"


KIND = AnalysisKind(findings=_findings, scope=_scope)
