"""Growth: baselines of what learns nothing, equal bare hosts, and the screening."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.analysis import growth
from esper_ab.analysis.conduct import evaluated_envs
from esper_ab.analysis.growth import screening
from esper_ab.analysis.kinds import AnalysisKind
from esper_ab.analysis.observe import Pairs
from esper_ab.journal.fold import History
from esper_ab.settings.differences import starts
from esper_ab.verdict.vocabulary import Finding

_SIZE = "host_params"


def _findings(history: History, pairs: Pairs) -> Iterator[Finding]:
    yield from growth.findings(history, pairs)
    runs = history.runs.values()
    trained = {size for run in runs for size in run.columns.measure(_SIZE) if size == size}  # false for NaN
    sizes = trained | {env.measures[_SIZE] for run in runs for env in evaluated_envs(run)}
    if len(sizes) > 1:
        numbers = ", ".join(f"{size:g}" for size in sorted(size for size in sizes if size is not None))
        sentence = f"The bare hosts had different numbers of parameters ({numbers}): not one task."
        yield Finding("data", "blocks", (), sentence)


def _scope(history: History) -> str:
    """Say where the op head starts, to which an untrained policy leans."""
    groups = history.plan.experiment.groups
    if not any(group.settings.has_policy for group in groups):
        return ""
    begin = starts(groups)
    return f"start {'by group' if len(begin) > 1 else next(iter(begin), '')}"


KIND = AnalysisKind(findings=_findings, scope=_scope, screening=screening)
