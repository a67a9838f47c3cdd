"""What may be said: a comparison each, departures from the plan, what to do next. Types only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from esper_ab.design.design import Design
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.follow import Courses
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.profiles import Profile, Ranges, profiles_of
from esper_ab.verdict.scale import Scale


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Everything that is concluded."""

    observations: Observations  # with a plan those of its runs
    scales: tuple[Scale, ...]  # one per task
    design: Design  # of all comparisons together
    plan: str  # sha256 of the plan; "": nothing was declared before the runs, and all of it is exploratory
    courses: Courses
    comparisons: tuple[Comparison, ...]  # by task, the mean over tasks last
    findings: tuple[Finding, ...]  # that the outcomes themselves show
    departures: tuple[str, ...]  # what of the plan was not followed
    notes: tuple[str, ...]  # what else must be known of the observations
    next_step: str  # what the plan asks for now; "": nothing
    profiles: tuple[Profile, ...] = ()  # by group; without ranges of scores none

    @property
    def exploratory(self) -> bool:
        """Whether no plan was declared."""
        return not self.plan


def with_profiles(answer: Answer, ranges: Ranges) -> Answer:
    """Return `answer` with profiles of its groups; as it is without ranges, and while a task has no score."""
    if not ranges:
        return answer
    return replace(answer, profiles=profiles_of(answer.observations, answer.design.groups, ranges))
