"""Rows and tables of a report for one kind of task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from esper_ab.analysis.learning import Learning
from esper_ab.contracts.kinds_of_task import Concern, of_kind
from esper_ab.contracts.wording import counted
from esper_ab.design.outcome_words import of_training
from esper_ab.journal.outcomes import RunOutcome
from esper_ab.report.content import Content
from esper_ab.report.tables.table import Table
from esper_ab.settings.experiment import ResolvedExperiment

Row = tuple[str, Callable[[RunOutcome], float | None], int | None]  # label, number of a run, decimals (None: by size)
LearningRow = tuple[str, Callable[[Learning], str]]
_EPISODES = "training episodes"


class TablesKind(Concern):
    """Base of the rows and tables of a kind of task; the defaults are for kinds whose runs have episodes."""

    file = "tables"
    note = ""  # on the rows of `rows`
    learning: tuple[LearningRow, ...] = ()  # rows on what limits learning
    evaluated = "the frozen policy in fresh episodes, sampled actions unless it says greedy"
    words: ClassVar[Mapping[str, str]] = {}  # other labels of common rows; "" leaves one out
    episode = "training episode"  # along the axis of curves
    curve = "Mean over environments in each training episode."
    not_the_outcome = "the policy still changes and explores"  # why a curve is not
    changes = "Change of entropy: last tenth of the training episodes minus the first."
    harder = "a harder task"  # where to compare runs that have all reached the best possible outcome

    def rows(self, content: Content) -> Sequence[Row]:
        """Return the rows of the groups' measures: by default one for each measure that the plan declares."""
        measures = content.design.measures.measures
        return tuple((measure.title, lambda run, name=measure.name: run.measures[name], None) for measure in measures)

    def conditions(self, experiment: ResolvedExperiment) -> dict[str, str]:
        """Describe how much a run is trained and evaluated."""
        steps = counted(experiment.steps, "step")
        evaluated_words = counted(experiment.eval_episodes, "episode")
        return {
            "episodes": f"{experiment.episodes} of {steps}, {counted(experiment.n_envs, 'environment')}",
            "evaluation": f"{evaluated_words} per run, sampled actions; the first of each environment also greedy",
        }

    def training(self, content: Content) -> tuple[Table, ...]:
        """Return additional tables on training."""
        return ()


def tables_of(content: Content) -> TablesKind:
    """Return the rows and tables for the kind of the plan's task."""
    return of_kind(content.history.plan.kind, TablesKind)


def averaged(content: Content) -> str:
    """Return the part of training that the outcome averages; "" for an evaluation."""
    return of_training(content.design.outcome_over, tables_of(content).words.get(_EPISODES, _EPISODES))
