"""Journal history -> contents of a report, before any layout: the state of the experiment and its conclusions.

Pure. Text, JSON and HTML are renderings of one `Content`, so they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.analysis.analyse import Analysis, analyse
from esper_ab.contracts.shell_command import shell_command
from esper_ab.design.design import Design
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.verdict.comparison import Comparison


@dataclass(frozen=True, kw_only=True)
class State:
    """Progress of the experiment. `complete` is False whenever a reader must be warned."""

    complete: bool
    word: str  # "finished", "in progress", "stale", "incomplete", "failed", "interrupted"
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything that a report contains."""

    history: History
    state: State
    analysis: Analysis
    place: str = "EXPERIMENT"  # its directory, as commands to paste name it

    @property
    def design(self) -> Design:
        """What was declared before the first run."""
        return self.history.design

    @property
    def experiment(self) -> ResolvedExperiment:
        """The settings of the plan."""
        return self.history.plan.experiment

    @property
    def outcomes(self) -> dict[str, RunOutcome]:
        """Outcomes by run, in plan order."""
        return self.analysis.outcomes

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Comparisons in the order of the design."""
        return self.analysis.comparisons

    @property
    def groups(self) -> tuple[str, ...]:
        return self.history.groups

    @property
    def title(self) -> str:
        between = " against " if len(self.groups) == 2 else ", "
        return f"{between.join(self.groups)} on {self.experiment.task_title}"

    def of_group(self, group: str) -> tuple[RunOutcome, ...]:
        """Return the outcomes of one group, by replicate."""
        return tuple(self.outcomes[run.ref.name] for run in self.history.of_group(group))


def content(history: History, *, held: bool = True, place: str = "EXPERIMENT") -> Content:
    """Derive a report's contents from a history.

    `held`: whether a process works on a journal without an end; `place`: the experiment directory, for commands.
    """
    return Content(history=history, state=_state(history, place, held=held), analysis=analyse(history), place=place)


def _state(history: History, place: str, *, held: bool) -> State:
    runs = history.runs.values()
    finished = sum(run.evaluation is not None for run in runs)
    left_out, lost = sum(run.left_out for run in runs), sum(run.lost for run in runs)
    started = len(runs) - left_out
    spared = f"; {left_out} more were not needed, because their comparisons were decided" if left_out else ""
    dropped = f"; {lost} {'was' if lost == 1 else 'were'} given up after failures" if lost else ""
    done = f"{finished} of {started} runs are evaluated{dropped}{spared}"
    if history.ended is None and not held:
        gone = "The journal has no end and nobody works on it, its coordinator is gone"
        remedy = f"`{shell_command('resume', place)}` goes on"
        return State(complete=False, word="stale", sentence=f"{gone}; {remedy}: {done}.")
    if history.ended is None:
        return State(complete=False, word="in progress", sentence=f"The journal has no end yet: {done}.")
    status, detail = history.ended.status, history.ended.detail
    if status == "finished" and finished == started:
        return State(complete=True, word="finished", sentence=f"Finished: all {started} runs are evaluated{spared}.")
    because = f" ({detail})" if detail else ""
    if status == "finished":
        return State(complete=False, word="incomplete", sentence=f"Ended{because}, but only {done}.")
    return State(complete=False, word=status, sentence=f"The experiment {_ENDS[status]}{because}: {done}.")


_ENDS = {"failed": "failed", "interrupted": "was interrupted"}
