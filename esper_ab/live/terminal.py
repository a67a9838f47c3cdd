"""Live view of an experiment in the terminal: a bar with the time left, and a table of groups after every barrier.

The view is an observer of the coordinator: it receives every journalled event and heartbeat, and returns nothing. In a
terminal it redraws in place; in a pipe or a file it writes at most one line per minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from esper_ab.contracts import messages
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible
from esper_ab.contracts.wording import counted, n_pairs
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.journal.events import (
    AnyEvent,
    EpisodeRecorded,
    ExperimentStarted,
    Incident,
    LookTaken,
    MilestoneReleased,
    PlanExtended,
    RunEvaluated,
)
from esper_ab.journal.fold import History, begin
from esper_ab.journal.outcomes import outcome_of
from esper_ab.journal.recent import (
    DIFFERENCE_LABEL,
    RECENT,
    REWARD_LABEL,
    differences_now,
    evaluation_work,
    group_now,
    worked_s,
)
from esper_ab.live.alarms import Alarms
from esper_ab.plan.plan import Plan

_REDRAW_S = 0.2
_ECHO = 4  # columns kept free for the echo of two Ctrl-C, which would wrap and move the cursor
_COLUMNS = ("group", "episodes", "", REWARD_LABEL, "entropy", "s / episode")  # the third is the outcome's
_COLUMNS_OF_TRAINER = ("group", "points", "", "s / point")
_WIDE = 80  # terminal columns that fit all table columns
_LONGEST = 16  # longest word that is never broken
_LINE_S = 60.0  # minimum time between plain lines


class LiveView:
    """The live view, a context manager and observer: `with LiveView(plan, console) as view: view.observe(event)`."""

    def __init__(
        self, plan: Plan, console: Console, clock: Callable[[], float] = time.monotonic, history: History | None = None
    ) -> None:
        """Create the view. `clock` returns monotonic seconds, for the estimate of the time left and the redraw rate.

        `history`: the history of a resumed experiment, to which the view adds new events.
        """
        self._console = console
        self._clock = clock
        self._planned = [spec for block in plan.blocks for spec in block.runs]
        self._history = history
        self._alarms = Alarms(history)
        self._within: dict[str, float] = {}  # by run: work done since the last record, in episodes
        self._began = clock()
        self._drawn = self._began - _REDRAW_S
        self._lined = self._began - _LINE_S
        self._state: Group | Text = Text("starting the workers; each must first load torch")
        worked_before_s = 0.0
        if history is not None:
            self._state = _picture(history, console.width)
            worked_before_s = worked_s(history)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("elapsed,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            get_time=clock,
            speed_estimate_period=300.0,
            auto_refresh=False,
        )
        self._before = self._done()  # excluded from the pace
        self._task = self._bar.add_task("training", total=self._total(), completed=int(self._before))
        self._bar.tasks[0].start_time = self._began - worked_before_s
        self._live = Live(console=console, auto_refresh=False, transient=False)

    @property
    def _redraws(self) -> bool:
        """Whether the view redraws in place; checked at every use, because a terminal may hang up."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def __enter__(self) -> LiveView:
        if self._redraws:
            self._live.start()
            self.tick(now=True)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # the terminal has gone
            for line in self._alarms.counts():
                self._tell(line)
            if self._live.is_started:
                self.tick(now=True)
                self._live.stop()

    def observe(self, event: AnyEvent | messages.Progress | str) -> None:
        """Process one journalled event or heartbeat. Strings, which are warnings, are left to `Warnings`."""
        self._leave_a_dead_terminal()
        if isinstance(event, str):
            return
        if isinstance(event, ExperimentStarted):
            self._history = begin(event, keeps_records=False)
        elif self._history is None:
            return
        elif isinstance(event, messages.Progress):
            self._within[event.run.name] = _fraction(self._history.runs[event.run.name].spec, event)
            self.tick()
        else:
            self._history.add(event)
            self._react(event, self._history)

    def _leave_a_dead_terminal(self) -> None:
        """Switch to plain lines without colours once the terminal is gone (live/console.py writes them to a file)."""
        if self._live.is_started and not self._redraws:
            self._console.is_interactive = False
            self._console.no_color = True
            with suppress(OSError):
                self._live.update(Text(""))
                self._live.stop()

    def _react(self, event: AnyEvent, history: History) -> None:
        if isinstance(event, EpisodeRecorded | RunEvaluated):
            self._within[event.record.run.name] = 0.0
        if isinstance(event, LookTaken | PlanExtended):
            self._tell(_news(event, history))
        elif isinstance(event, Incident):
            if line := self._alarms.line(event, history):
                self._tell(line)
        elif isinstance(event, MilestoneReleased):
            if self._redraws:
                self._state = _picture(history, self._console.width)
                self.tick(now=True)
            else:
                self._line(event, history)

    def _tell(self, line: str) -> None:
        self._console.print(typeable(visible(line)), markup=False, highlight=False, soft_wrap=not self._redraws)

    def _total(self) -> float:
        """Return how much work is now planned, counted in episodes, without runs that will never start."""
        remaining_specs = self._planned
        if self._history is not None:
            remaining_specs = [run.spec for run in self._history.runs.values() if not (run.left_out or run.lost)]
        return sum(spec.episodes + evaluation_work(spec) for spec in remaining_specs)

    def _done(self) -> float:
        """Return how much work is done, counted in episodes, including work from before this view was created."""
        if self._history is None:
            return 0.0
        done_episodes = 0.0
        for name, run in self._history.runs.items():
            if run.lost:
                continue
            evaluation = evaluation_work(run.spec) if run.evaluation else 0.0
            done_episodes += len(run.columns) + evaluation + self._within.get(name, 0.0)
        return done_episodes

    def tick(self, *, now: bool = False) -> None:
        """Redraw if enough time has passed since the last redraw; with `now`, redraw at once."""
        if not self._redraws or (self._clock() - self._drawn < _REDRAW_S and not now):
            return
        self._drawn = self._clock()
        self._bar.update(self._task, completed=self._done(), total=self._total())
        self._live.update(Group(self._state, Constrain(self._bar, self._console.width - _ECHO)), refresh=True)

    def _line(self, event: MilestoneReleased, history: History) -> None:
        """Print a line for a barrier, unless the previous line was printed within the last minute."""
        now_s = self._clock()
        if now_s - self._lined < _LINE_S:
            return
        self._lined = now_s
        groups = "; ".join(_summarise(history, group) for group in history.groups)
        total = max(self._total(), 1e-9)
        done_episodes = min(self._done(), total)  # work that a restart repeats is counted twice
        pace = (done_episodes - self._before) / max(now_s - self._began, 1e-9)  # episodes per second
        parts = [_milestone_name(event, history), groups]
        differences = "; ".join(_differences(history))
        if differences:
            parts.append(f"{differences} ({DIFFERENCE_LABEL})")
        percent = f"{100 * done_episodes / total:.0f} %"
        if pace > 0:
            parts.append(f"{percent}, about {_duration((total - done_episodes) / pace)} left")
        else:
            parts.append(percent)
        self._tell(" | ".join(parts))


def _picture(history: History, width: int) -> Group:
    """Return the table of groups and, below it, the differences, if there are any."""
    differences = _differences(history)
    if not differences:
        return Group(_table(history, width))
    lines = [*differences, f"({DIFFERENCE_LABEL})"]
    return Group(_table(history, width), *map(Text, lines))


def _news(event: LookTaken | PlanExtended, history: History) -> str:
    if isinstance(event, PlanExtended):
        return f"more seeds: {history.replicates} in all"
    look = f"look at {counted(event.replicates, 'seed')}: {event.outcome}"
    if event.leaving:
        return f"{look}; done with {', '.join(event.leaving)}"
    return look


def _fraction(spec: RunSpec, progress: messages.Progress) -> float:
    """Return how much work was done since the last milestone, counted in episodes."""
    if progress.phase == "evaluate":
        return min(progress.step / spec.steps, evaluation_work(spec))
    if progress.phase == "train":
        return min(progress.step / spec.steps, 1.0)
    return 0.0


def _milestone_name(event: MilestoneReleased, history: History) -> str:
    spec = history.runs[event.runs[0]].spec
    label = f"seed {spec.ref.replicate}"
    if not event.milestone:
        return f"{label} ready"
    if event.milestone > spec.episodes:
        return f"{label} evaluated"
    return f"{label} {'point' if spec.trainer is not None else 'episode'} {event.milestone} of {spec.episodes}"


def _table(history: History, width: int) -> Table:
    """Build the table of groups.

    Columns are as wide as their longest word; narrow terminals omit the last two columns, except of a user's trainer.
    """
    is_own_trainer = history.plan.trainer is not None
    names: Sequence[str] = _COLUMNS if width >= _WIDE else _COLUMNS[:-2]
    if is_own_trainer:
        names = _COLUMNS_OF_TRAINER
    columns = [name or history.outcome.title for name in names]
    digits = _digits_of_mean(history)
    table = Table(
        title=f"last {RECENT} {'points' if is_own_trainer else 'training episodes'}",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
        pad_edge=False,
    )
    for column in columns:
        if column == "group":
            table.add_column(column, justify="left", overflow="fold", min_width=_longest(history.groups))
        else:
            table.add_column(column, justify="right", overflow="fold", min_width=_longest(column.split()))
    for group in history.groups:
        recent_numbers = group_now(history, group)
        cells = [
            f"{recent_numbers.episodes} / {recent_numbers.of_episodes}",
            _number(recent_numbers.outcome, digits),
            _number(recent_numbers.seconds, 2),
        ]
        if not is_own_trainer:
            cells[2:2] = [_number(recent_numbers.reward, 2), _number(recent_numbers.entropy, 2)]
        table.add_row(Text(group), *cells[: len(columns) - 1])
    return table


def _digits_of_mean(history: History) -> int:
    """Return the decimals of a mean outcome: one fewer than those of a difference if the margin is 1 or more."""
    digits = history.design.digits
    return digits - 1 if history.design.margin >= 1.0 else digits


def _longest(words: Sequence[str]) -> int:
    return min(_LONGEST, max(map(len, words)))


def _differences(history: History) -> list[str]:
    return [
        f"{recent_difference.a} - {recent_difference.b} {history.design.difference(recent_difference.difference)}, "
        f"{n_pairs(recent_difference.pairs)}"
        for recent_difference in differences_now(history)
        if recent_difference.difference is not None
    ]


def _summarise(history: History, group: str) -> str:
    """Return the range of a group's outcomes so far; if it has no outcome yet, return its current training outcome."""
    design = history.design
    digits = _digits_of_mean(history)
    outcomes = [outcome_of(run, design.outcome_over) for run in history.of_group(group)]
    known_outcomes = [value for value in outcomes if value is not None]
    if known_outcomes:
        low = _number(min(known_outcomes), digits)
        high = _number(max(known_outcomes), digits)
        span = low if low == high else f"{low} to {high}"
        return f"{group} {design.outcome.value(span)} in {counted(len(known_outcomes), 'run')}"
    recent_outcome = group_now(history, group).outcome
    if recent_outcome is None:
        return f"{group} -"
    return f"{group} {design.outcome.value(_number(recent_outcome, digits))}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _duration(seconds: float) -> str:
    minutes, seconds_left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {seconds_left} s"
    return f"{seconds_left} s"
