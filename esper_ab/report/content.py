"""Journal history -> what a report says, before any layout: state, comparisons, outcomes per run and per group.

Pure. Text, JSON and HTML are renderings of one `Content`, so they cannot disagree.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import RunOutcome, outcomes
from esper_ab.stats.comparison import Comparison, Pair, Question, compare


@dataclass(frozen=True, kw_only=True)
class State:
    """How far the experiment got. `complete` is False whenever a reader must know it before reading on."""

    complete: bool
    word: str  # "finished", "in progress", "failed", "interrupted"
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything a report says."""

    history: History
    state: State
    outcomes: dict[str, RunOutcome]  # by run, in plan order
    comparisons: tuple[Comparison, ...]  # every pair of groups, in the order of the experiment

    @property
    def groups(self) -> tuple[str, ...]:
        return self.history.groups

    @property
    def title(self) -> str:
        between = " against " if len(self.groups) == 2 else ", "
        return f"{between.join(self.groups)} on {self.history.plan.experiment.task}"

    def of_group(self, group: str) -> tuple[RunOutcome, ...]:
        """Outcomes of one group, by replicate."""
        found = [outcome for outcome in self.outcomes.values() if outcome.run.group_id == group]
        return tuple(sorted(found, key=lambda outcome: outcome.run.replicate))


def content(history: History) -> Content:
    """What the journal supports, and no more."""
    found = outcomes(history)
    names = list(itertools.combinations(history.groups, 2))
    experiment = history.plan.experiment
    comparisons = tuple(
        _compare(
            history,
            found,
            Question(
                a=a,
                b=b,
                planned_pairs=experiment.replicates,
                comparisons=len(names),
                margin=experiment.margin,
            ),
        )
        for a, b in names
    )
    return Content(history=history, state=_state(history, found), outcomes=found, comparisons=comparisons)


def _compare(history: History, found: dict[str, RunOutcome], question: Question) -> Comparison:
    a = {run.ref.replicate: run for run in history.of_group(question.a)}
    b = {run.ref.replicate: run for run in history.of_group(question.b)}
    pairs: list[Pair] = []
    same = True
    for replicate in sorted(a.keys() & b.keys()):
        first, second = found[a[replicate].ref.run].endpoint, found[b[replicate].ref.run].endpoint
        if first is None or second is None:
            continue
        pairs.append(Pair(replicate=replicate, a=first, b=second))
        same = same and _digests(a[replicate]) == _digests(b[replicate])
    return compare(question, tuple(pairs), same_records=bool(pairs) and same)


def _digests(run: RunHistory) -> tuple[str, ...]:
    evaluation = (run.evaluation.digest,) if run.evaluation else ()
    return (*(record.digest for record in run.curve()), *evaluation)


def _state(history: History, found: dict[str, RunOutcome]) -> State:
    runs = len(found)
    finished = sum(outcome.endpoint is not None for outcome in found.values())
    done = f"{finished} of {runs} runs have an endpoint"
    if history.ended is None:
        return State(complete=False, word="in progress", sentence=f"The journal has no end yet: {done}.")
    status, detail = history.ended.status, history.ended.detail
    if status == "finished" and finished == runs:
        return State(complete=True, word="finished", sentence=f"Finished: all {runs} runs have an endpoint.")
    because = f" ({detail})" if detail else ""
    if status == "finished":
        return State(complete=False, word="incomplete", sentence=f"Ended{because}, but only {done}.")
    return State(complete=False, word=status, sentence=f"The experiment {_ENDS[status]}{because}: {done}.")


_ENDS = {"failed": "failed", "interrupted": "was interrupted"}
