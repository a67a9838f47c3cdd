"""A catalogue of analyses for one kind of task only. Each file is named after its kind and defines `KIND`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from esper_ab.analysis.observe import Pairs
from esper_ab.contracts import catalog
from esper_ab.contracts.wording import counted
from esper_ab.journal.fold import History
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.verdict.finding import Finding


def episodes_said(experiment: ResolvedExperiment) -> str:
    """Describe a run's training budget in episodes, steps and environments."""
    trained = counted(experiment.episodes, "episode")
    steps = counted(experiment.steps, "step")
    return f"{trained} of {steps} in {counted(experiment.n_envs, 'environment')}"


@dataclass(frozen=True, kw_only=True)
class AnalysisKind:
    """Additional analyses for one kind of task; the defaults add nothing."""

    findings: Callable[[History, Pairs], Iterable[Finding]] = lambda *_: ()
    budget: Callable[[ResolvedExperiment], str] = episodes_said  # what every verdict is conditional on
    scope: Callable[[History], str] = lambda _: ""  # what a verdict is conditional on besides task, budget and PPO


def kind_of(history: History) -> AnalysisKind:
    """Return the analyses for the kind of the plan's task."""
    return catalog.entry_or(__name__, history.plan.kind, "KIND", AnalysisKind())
