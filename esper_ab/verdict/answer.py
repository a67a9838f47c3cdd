"""The answer: all comparisons, departures from the plan, and the next step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from esper_ab.design.design import Design
from esper_ab.verdict.best_groups import BestGroups
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.looks import PlanProgress
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.profiles import Profile, Ranges, profiles_of
from esper_ab.verdict.scale import Scale
from esper_ab.verdict.task_improvement import TaskImprovement


@dataclass(frozen=True, kw_only=True)
class Answer:
    """All conclusions about the comparisons of one plan."""

    observations: Observations  # if there is a plan, those of its runs
    scales: tuple[Scale, ...]  # one per task
    design: Design  # of all comparisons together
    plan: str  # sha256 of the plan; "": no plan was declared before the runs, so all of it is exploratory
    progress: PlanProgress
    comparisons: tuple[Comparison, ...]  # by task, the mean over tasks last
    findings: tuple[Finding, ...]  # shown by the outcomes themselves
    departures: tuple[str, ...]  # what was not done as planned
    notes: tuple[str, ...]  # what else a reader must know about the observations
    next_step: str  # what the plan asks for now; "": nothing
    improvements: tuple[TaskImprovement, ...] = ()  # by comparison, over all tasks; empty with one task
    profiles: tuple[Profile, ...] = ()  # by group; empty without ranges of scores
    best: BestGroups | None = None  # of four groups or more without a plan, those that may be the best

    @property
    def exploratory(self) -> bool:
        """True if no plan was declared."""
        return not self.plan


def with_profiles(answer: Answer, ranges: Ranges) -> Answer:
    """Return `answer` with profiles of its groups, or `answer` itself if ranges or scores of a task are missing."""
    if not ranges:
        return answer
    return replace(answer, profiles=profiles_of(answer.observations, answer.design.groups, ranges))
