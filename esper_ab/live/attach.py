"""Viewer of an experiment run by another process: follows the journal as it grows and changes nothing.

Any number of viewers may attach, from any machine that sees the run directory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_line import typed
from esper_ab.contracts.visible import visible_line
from esper_ab.journal.events import ExperimentEnded, ExperimentStarted, PointReleased
from esper_ab.journal.file import JOURNAL_NAME, Reading
from esper_ab.journal.fold import History, begin
from esper_ab.journal.load import Loaded
from esper_ab.journal.lock import holder
from esper_ab.journal.tail import follow
from esper_ab.live.console import rich_console
from esper_ab.live.status import ExperimentState, state_of, status_of, status_text
from esper_ab.live.terminal import LiveView

_POLL_S = 0.25


class Viewer:
    """Follows the journal of one run directory."""

    def __init__(self, run_dir: Path) -> None:
        """Read the journal so far; UsageError when missing or empty, JournalError, here and later, when damaged."""
        self._run_dir = run_dir
        self._reading: Reading = follow(run_dir / JOURNAL_NAME)
        self.held = holder(run_dir) is not None  # before reading: a holder gone by then has written everything
        first = next(self._reading, None)
        if not isinstance(first, ExperimentStarted):
            raise UsageError(f"{run_dir / JOURNAL_NAME} does not begin with experiment_started; try again, or see fsck")
        self.history: History = begin(first, keeps_records=False)
        for event in self._reading:
            self.history.add(event)

    @property
    def state(self) -> ExperimentState:
        return state_of(self.history, held=self.held)

    def loaded(self) -> Loaded:
        """Return what has been read so far."""
        at = self._reading
        return Loaded(history=self.history, lines=at.lines, wall_time=at.wall_time, torn_bytes=at.torn_bytes)

    def batches(self, poll_s: float = _POLL_S) -> Iterator[Reading]:
        """Yield new events, batch by batch, until the experiment ends or its process has gone.

        The consumer adds them to `history`.
        """
        while self.state == "running":
            time.sleep(poll_s)
            self.held = holder(self._run_dir) is not None
            yield self._reading

    def catch_up(self) -> None:
        """Add all new events to `history` without yielding them."""
        self.held = holder(self._run_dir) is not None
        for event in self._reading:
            self.history.add(event)


def attach(run_dir: Path) -> None:
    """Show the experiment in this terminal until it ends; Ctrl-C ends only the viewer."""
    viewer, console = Viewer(run_dir), rich_console()
    try:
        if viewer.state == "running" and not console.is_terminal:
            click.echo(status_text(run_dir))  # present state, since the next line may take a while
        if viewer.state == "running" or console.is_terminal:
            with LiveView(viewer.history.plan, console, history=viewer.history) as view:
                for events in viewer.batches():
                    for event in events:
                        view.observe(event)
                    view.tick()
    except KeyboardInterrupt:
        again, end = typed("attach", run_dir), typed("stop", run_dir)
        click.echo(f"\nleft; the run goes on. See it again: {again}; end it: {end}")
        return
    click.echo(_last_words(run_dir, viewer) if console.is_terminal else status_text(run_dir))


def attach_json(run_dir: Path) -> None:
    """Print the status as one line of JSON now, after every barrier, and at the end."""
    viewer = Viewer(run_dir)
    click.echo(_line(viewer))
    try:
        for events in viewer.batches():
            kinds = set()
            for event in events:
                viewer.history.add(event)
                kinds.add(type(event))
            if kinds & {PointReleased, ExperimentEnded} or viewer.state != "running":
                click.echo(_line(viewer))
    except KeyboardInterrupt:
        return


def _line(viewer: Viewer) -> bytes:
    return msgspec.json.encode(status_of(viewer.loaded(), held=viewer.held))


def _last_words(run_dir: Path, viewer: Viewer) -> str:
    name, ended = viewer.history.plan.experiment.name, viewer.history.ended
    if viewer.state == "finished":
        return f"{name}: finished; `{typed('report', run_dir)}` has the verdict"
    why = f": {visible_line(ended.detail)}" if ended and ended.detail else ""
    gone = ", its coordinator is gone" if viewer.state == "stale" else why
    return f"{name}: {viewer.state}{gone}; `{typed('resume', run_dir)}` goes on from there"
