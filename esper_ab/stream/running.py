"""Experiments of a stream: planned, started, continued after an interruption, and extended from look to look."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from esper_ab.campaign.answering import write_report
from esper_ab.campaign.campaign import Campaign, CampaignPlan
from esper_ab.campaign.directory import claim
from esper_ab.campaign.launcher import make_launcher
from esper_ab.campaign.planning import plan_campaign
from esper_ab.campaign.resuming import add_seeds, resume
from esper_ab.campaign.running import RunOptions, run
from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.errors import WorkerFailed, naming
from esper_ab.contracts.shell_command import shell_command
from esper_ab.control.rules.deaths import nothing_left
from esper_ab.journal.load import load
from esper_ab.launchers import Launcher
from esper_ab.settings.launcher import asked_launcher
from esper_ab.stream.outcomes import directory_of
from esper_ab.stream.question import StreamQuestion

_UNWATCHED = RunOptions(watched=False)


def planned(campaign: Campaign) -> CampaignPlan:
    """Rehearse and plan; raises UsageError for every problem that can be found before anything starts."""
    return plan_campaign(campaign, make_launcher(campaign.launcher))


def start(plan: CampaignPlan) -> None:
    """Carry out a plan; raises as `campaign.running.run` does."""
    with _naming_next_step(plan.directory), claim(plan) as claimed_plan:
        run(claimed_plan, _UNWATCHED)


def _naming_next_step(directory: Path) -> AbstractContextManager[None]:
    """Inside this context, errors suggest sending the candidate again, not resuming its experiment."""
    command = f"{shell_command('stream', 'try', directory.parent.parent)} with the same candidate"
    return naming(command, replaced_command=shell_command("resume", directory))


def run_to(folder: Path, question: StreamQuestion, name: str, seeds: int) -> None:
    """Train what is missing of the first `seeds` seeds of an experiment that has begun; raises as `start` does."""
    directory = directory_of(folder, name)
    launcher = _launcher(question)
    with _naming_next_step(directory):
        history = load(directory).history
        if nothing_left(history):
            raise WorkerFailed(f"{directory}: every run of it was given up")
        if not history.finished:
            resume(directory, launcher, _UNWATCHED)
        if load(directory).history.replicates < seeds:
            add_seeds(directory, launcher, _UNWATCHED, seeds)


def report_of(folder: Path, name: str) -> Path:
    """Write the report of an experiment, and return its page."""
    directory = directory_of(folder, name)
    write_report(directory)
    return directory / PAGE


def _launcher(question: StreamQuestion) -> Launcher:
    return make_launcher(asked_launcher(question.launcher, "[launcher]", {"launcher": "name"}))
