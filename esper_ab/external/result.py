"""What endpoints of runs made elsewhere come to: verdicts under a plan, or exploratory ones without. Types only."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.design.design import Design
from esper_ab.external.endpoints import Endpoints
from esper_ab.external.profiles import Profile
from esper_ab.external.scales import Scale
from esper_ab.verdict.comparison import Comparison


@dataclass(frozen=True, kw_only=True)
class ExternalComparison:
    """One comparison, in one task or in the mean over tasks."""

    task: str  # "": there are no tasks
    comparison: Comparison


@dataclass(frozen=True, kw_only=True)
class ExternalResult:
    """Everything that is concluded."""

    endpoints: Endpoints  # with a plan those of its runs
    scales: tuple[Scale, ...]  # one per task
    design: Design  # of all comparisons together
    plan: str  # sha256 of the plan; "": nothing was declared before the runs, and all of it is exploratory
    comparisons: tuple[ExternalComparison, ...]  # by task, the mean over tasks last
    departures: tuple[str, ...]  # what of the plan was not followed
    notes: tuple[str, ...]  # what else must be known of the endpoints
    next_step: str  # what the plan asks for now; "": nothing
    profiles: tuple[Profile, ...] = ()  # by group; without ranges of scores none

    @property
    def exploratory(self) -> bool:
        """Whether no plan was declared."""
        return not self.plan
