"""Journal history -> contents of a report, before any layout: the state of the experiment and its conclusions.

Pure. Text, JSON and HTML are renderings of one `Content`, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from esper_ab.analysis.analyse import Analysis, analyse
from esper_ab.contracts.shell_command import shell_command
from esper_ab.design.design import Design
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome
from esper_ab.report.document import State
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.verdict.comparison import Comparison


@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything that a report contains."""

    history: History
    state: State
    analysis: Analysis
    place: str = "EXPERIMENT"  # its directory, as suggested commands name it

    @property
    def design(self) -> Design:
        """The design, declared before the first run."""
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
        return f"{against(self.groups)} on {self.experiment.task_title}"

    def of_group(self, group: str) -> tuple[RunOutcome, ...]:
        """Return the outcomes of one group, by replicate."""
        return tuple(self.outcomes[run.ref.name] for run in self.history.of_group(group))


def against(groups: Sequence[str]) -> str:
    """Name the groups that are compared."""
    if len(groups) == 2:
        return " against ".join(groups)
    return ", ".join(groups)


def content(history: History, *, held: bool = True, place: str = "EXPERIMENT") -> Content:
    """Derive a report's contents from a history.

    `held`: if the journal has no end, whether a process still works on the experiment. `place`: the experiment
    directory, for commands.
    """
    return Content(history=history, state=_state(history, place, held=held), analysis=analyse(history), place=place)


def _state(history: History, place: str, *, held: bool) -> State:
    runs = history.runs.values()
    finished_count = sum(run.evaluation is not None for run in runs)
    unstarted_count = sum(run.left_out for run in runs)
    lost_count = sum(run.lost for run in runs)
    started_count = len(runs) - unstarted_count
    spared_words = ""
    if unstarted_count:
        spared_words = f"; {unstarted_count} more were not needed, because their comparisons were decided"
    done_words = f"{finished_count} of {started_count} runs are evaluated{_dropped(lost_count)}{spared_words}"
    if history.ended is None and held:
        return State("in progress", f"It is running: {done_words}.")
    if history.ended is None:
        resume = shell_command("resume", place)
        return State("stale", f"Its coordinator died before the end; `{resume}` continues it: {done_words}.")
    status = history.ended.status
    if status == "finished" and finished_count == started_count:
        return State("finished", f"Finished: all {started_count} runs are evaluated{spared_words}.")
    detail_words = ""
    if history.ended.detail:
        detail_words = f" ({history.ended.detail})"
    if status == "finished":
        return State("incomplete", f"Ended{detail_words}: {done_words}.")
    status_words = "was interrupted" if status == "interrupted" else status
    return State(status, f"The experiment {status_words}{detail_words}: {done_words}.")


def _dropped(lost_count: int) -> str:
    """Return the part of a sentence that counts the runs that were given up; "" if there are none."""
    if not lost_count:
        return ""
    verb = "was" if lost_count == 1 else "were"
    return f"; {lost_count} {verb} given up after failures"
