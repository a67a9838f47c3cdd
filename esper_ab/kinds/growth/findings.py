"""What an analysis adds for growth: a finding on bare hosts, their baseline, and what their questions cover. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.analysis.conduct import evaluated_envs
from esper_ab.analysis.kind import FindingsKind
from esper_ab.analysis.observe import ComparedPairs
from esper_ab.journal.fold import History
from esper_ab.kinds.growth.policy_bias import starts
from esper_ab.verdict.finding import Finding

_SIZE = "host_params"


class GrowthFindings(FindingsKind):
    """Findings for growth."""

    baseline_controller = "wait"
    baseline_words = "never grows"

    def findings(self, history: History, pairs: ComparedPairs) -> Iterator[Finding]:
        """Yield a finding on hosts of different sizes."""
        sizes: set[float] = set()
        for run in history.runs.values():
            sizes.update(size for size in run.columns.measure(_SIZE) if size == size)  # false for NaN
            for env in evaluated_envs(run):
                size = env.measures[_SIZE]
                if size is not None:
                    sizes.add(size)
        if len(sizes) > 1:
            numbers = ", ".join(f"{size:g}" for size in sorted(sizes))
            sentence = f"The bare hosts had different numbers of parameters ({numbers}): not one task."
            yield Finding("data", "blocks", (), sentence)

    def scope(self, history: History) -> str:
        """Describe the initial bias of the op head, which determines the preferences of an untrained policy."""
        groups = history.plan.experiment.groups
        if not any(group.settings.has_policy for group in groups):
            return ""
        begin = starts(groups)
        if len(begin) > 1:
            return "start by group"
        return f"start {next(iter(begin), '')}"


KIND = GrowthFindings()
