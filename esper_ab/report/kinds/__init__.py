"""A catalogue of the rows and tables of each kind of task, one `KIND` per file, named after the kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from esper_ab.analysis.learning import Learning
from esper_ab.contracts import catalog
from esper_ab.contracts.wording import counted
from esper_ab.design.outcome_words import of_training
from esper_ab.journal.outcomes import RunOutcome
from esper_ab.report.content import Content
from esper_ab.report.tables.table import Table
from esper_ab.settings.experiment import ResolvedExperiment

Row = tuple[str, Callable[[RunOutcome], float | None], int | None]  # label, number of a run, decimals (None: by size)
LearningRow = tuple[str, Callable[[Learning], str]]


def declared_rows(content: Content) -> tuple[Row, ...]:
    """Return a row for each measure that the plan declares."""
    measures = content.design.measures.measures
    return tuple((one.title, lambda run, name=one.name: run.measures[name], None) for one in measures)


def episodes_said(experiment: ResolvedExperiment) -> dict[str, str]:
    """Describe how much a run is trained and evaluated, for kinds of task that have episodes."""
    steps = counted(experiment.steps, "step")
    evaluated = counted(experiment.eval_episodes, "episode")
    return {
        "episodes": f"{experiment.episodes} of {steps}, {counted(experiment.n_envs, 'environment')}",
        "evaluation": f"{evaluated} per run, sampled actions; the first of each environment also greedy",
    }


@dataclass(frozen=True, kw_only=True)
class TableKind:
    """Rows and tables for one kind of task only, in addition to the common ones."""

    rows: Callable[[Content], Sequence[Row]] = declared_rows  # of the groups' measures
    note: str = ""  # on these rows
    learning: tuple[LearningRow, ...] = ()  # rows on what limits learning
    evaluated: str = "the frozen policy in fresh episodes, sampled actions unless it says greedy"
    conditions: Callable[[ResolvedExperiment], dict[str, str]] = episodes_said  # size of training and evaluation
    words: Mapping[str, str] = field(default_factory=dict)  # other labels of common rows; "" leaves one out
    changes: str = "Change of entropy: last tenth of the training episodes minus the first."
    harder: str = "a harder task"  # where to compare runs that have all reached the best possible outcome
    training: Callable[[Content], tuple[Table, ...]] = lambda _: ()


def averaged(content: Content) -> str:
    """Return the part of training that the outcome averages; "" for an evaluation."""
    episodes = "training episodes"
    return of_training(content.design.outcome_over, kind_of(content).words.get(episodes, episodes))


def kind_of(content: Content) -> TableKind:
    """Return the rows and tables for the kind of the plan's task."""
    return catalog.entry_or(__name__, content.history.plan.kind, "KIND", TableKind())
