"""The observers of a running experiment: run folders, warnings on stderr, trackers and the live view."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from esper_ab.control.observers import Observer
from esper_ab.control.run_folders import RunFolders
from esper_ab.journal.fold import History
from esper_ab.live.console import rich_console
from esper_ab.live.on_stderr import Warnings
from esper_ab.plan.plan import Plan
from esper_ab.trackers.beside import Trackers
from esper_ab.trackers.settings import wanted
from esper_ab.trackers.state import read_settings


def make_observers(
    stack: ExitStack, experiment_dir: Path, plan: Plan, history: History | None, *, watched: bool
) -> list[Observer]:
    """Start the observers of an experiment; `watched` adds the live view.

    On leaving `stack`, the view is closed and, after a successful experiment, the trackers get a few seconds to finish.
    `history` is the history of a resumed experiment, or None.
    """
    experiment_dir = experiment_dir.absolute()  # users' code may leave the current directory
    blocks = plan.blocks if history is None else history.blocks
    observers: list[Observer] = [RunFolders(experiment_dir, plan, blocks), Warnings(incidents=not watched)]
    tracking = read_settings(experiment_dir)
    if wanted(tracking):
        trackers = Trackers(experiment_dir, tracking)
        stack.push(trackers.settle)
        observers.append(trackers)
    if watched:
        from esper_ab.live.terminal import LiveView  # needs rich, which a plan and --help do not

        observers.append(stack.enter_context(LiveView(plan, rich_console(), history=history)))
    return observers
