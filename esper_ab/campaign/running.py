"""Carry out a planned campaign: its parts, one after the other, in the directory that was claimed for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esper_ab.campaign.answering import write_report
from esper_ab.campaign.campaign import CampaignPlan, PartPlan
from esper_ab.campaign.description import whole_plan
from esper_ab.campaign.directory import write_campaign_files
from esper_ab.campaign.experiment_directory import make_experiment_directory, take_over
from esper_ab.campaign.observers import make_observers
from esper_ab.campaign.reuse import kept_afterwards, place_policies
from esper_ab.contracts.errors import DiskFull, JournalError, naming
from esper_ab.contracts.files_below import removed_on_failure
from esper_ab.contracts.shell_command import shell_command
from esper_ab.control.observers import Observer
from esper_ab.control.reservation import reserve
from esper_ab.control.rules.limits import Limits
from esper_ab.journal.lock import Lock
from esper_ab.launchers import Launcher
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.state import save_settings


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a campaign is run and watched; no result depends on it."""

    watched: bool  # whether a live view is shown
    limits: Limits | None = None  # on silent and dead workers; None: the defaults
    observers: Sequence[Observer] = ()  # in addition to those of every experiment
    begin: Callable[[str], object] = str  # called with the name of each of several parts


def run(plan: CampaignPlan, options: RunOptions) -> None:
    """Carry out every part of a plan whose directory has been claimed; raises as `experiment_run.run` does.

    If the files above several parts cannot be written, the directory is removed again.
    """
    if plan.over_all is None:
        run_part(plan.parts[0], plan.launcher, options, plan.campaign.tracking, plan.campaign.about)
        return
    take_over(plan.directory)
    with ExitStack() as stack:
        with removed_on_failure(plan.directory):
            stack.enter_context(closing(Lock(plan.directory)))
            write_campaign_files(plan)
        for part in plan.parts:
            options.begin(part.name)
            if part is not plan.parts[0]:  # `claim` has reserved what the first part needs
                reserve(plan.launcher, part.plan.lanes, part.machine.devices)
            with resumed_as_a_whole(plan.directory, part.folder):
                run_part(part, plan.launcher, options, plan.campaign.tracking, plan.campaign.about)
            write_report(part.folder)


def run_part(
    part: PartPlan,
    launcher: Launcher,
    options: RunOptions,
    tracking: Tracking,
    author_remarks: dict[str, Any] | None = None,
) -> None:
    """Write the directory of one part, then train, evaluate and keep the journal; its lanes have been reserved.

    `tracking` may have only tags, for a later `track`. If the directory cannot be written, it is removed.
    """
    # Imported here, so that --help, plans and reports need no zmq, numpy or scipy.
    from esper_ab.control import experiment_run
    from esper_ab.journal.file import Journal

    folder = part.folder
    take_over(folder)
    with ExitStack() as stack:
        try:
            journal = Journal(folder)  # from here on no other process can take the directory
        except DiskFull:
            with removed_on_failure(folder):
                raise
        try:
            make_experiment_directory(folder, part.plan, part.machine, whole_plan(part), author_remarks, part.code)
            with removed_on_failure(folder):
                place_policies(part)
            if tracking != Tracking():
                with removed_on_failure(folder):
                    save_settings(folder, tracking)  # `make_observers` reads them, now and later
            observers = make_observers(stack, folder, part.plan, None, watched=options.watched)
        except BaseException:
            with suppress(JournalError):  # its folder may be gone
                journal.close()
            raise
        stack.enter_context(kept_afterwards(folder, is_asked=part.offers is not None))
        offered = () if part.offers is None else part.offers.events
        experiment_run.run(part.plan, journal, launcher, [*observers, *options.observers], options.limits, offered)


def resumed_as_a_whole(directory: Path, folder: Path) -> AbstractContextManager[None]:
    """Inside this context, errors suggest resuming the whole campaign, not only the part in `folder`."""
    return naming(shell_command("resume", directory), replaced_command=shell_command("resume", folder))
