"""Experiments of a stream: planned, started, continued after an interruption, and extended from look to look."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from esper_ab.campaign.answering import write_report
from esper_ab.campaign.campaign import Campaign, CampaignPlan
from esper_ab.campaign.directory import claim
from esper_ab.campaign.launcher import make_launcher
from esper_ab.campaign.planning import plan_campaign
from esper_ab.campaign.resuming import add_seeds, resume
from esper_ab.campaign.running import RunOptions, run
from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.errors import naming
from esper_ab.contracts.shell_command import shell_command
from esper_ab.journal.begun import begun
from esper_ab.journal.load import load
from esper_ab.journal.outcomes import outcome_of
from esper_ab.launchers import Launcher
from esper_ab.settings.launcher import asked_launcher
from esper_ab.stream.asked import EXPERIMENTS
from esper_ab.stream.question import CANDIDATE, INCUMBENT, StreamQuestion

_UNWATCHED = RunOptions(watched=False)


@dataclass(frozen=True)
class OutcomePairs:
    """The outcomes of an experiment's complete pairs, by seed, and the candidate's runs that were lost."""

    outcomes: tuple[tuple[float, float], ...]  # of incumbent and candidate
    lost: int


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


def has_begun(folder: Path, name: str) -> bool:
    """Whether an experiment of a stream has a journal with events."""
    return begun(directory_of(folder, name))


def run_to(folder: Path, question: StreamQuestion, name: str, seeds: int) -> None:
    """Train what is missing of the first `seeds` seeds of an experiment that has begun; raises as `start` does."""
    directory = directory_of(folder, name)
    launcher = _launcher(question)
    with _naming_next_step(directory):
        if not load(directory).history.finished:
            resume(directory, launcher, _UNWATCHED)
        if load(directory).history.replicates < seeds:
            add_seeds(directory, launcher, _UNWATCHED, seeds)


def directory_of(folder: Path, name: str) -> Path:
    """Return the directory of an experiment."""
    return folder / EXPERIMENTS / name


def pairs_of(folder: Path, name: str, seeds: int) -> OutcomePairs:
    """Return the outcomes of the first `seeds` seeds of an experiment that compares a candidate."""
    history = load(directory_of(folder, name)).history
    outcomes = {}
    for run_history in history.runs.values():
        ref = run_history.ref
        if ref.replicate < seeds:
            outcomes[ref.group_id, ref.replicate] = outcome_of(run_history, history.design.outcome_over)
    pairs = []
    lost_runs = 0
    for replicate in range(seeds):
        incumbent_outcome = outcomes.get((INCUMBENT, replicate))
        candidate_outcome = outcomes.get((CANDIDATE, replicate))
        lost_runs += candidate_outcome is None
        if incumbent_outcome is not None and candidate_outcome is not None:
            pairs.append((incumbent_outcome, candidate_outcome))
    return OutcomePairs(tuple(pairs), lost_runs)


def lone_outcomes(folder: Path, name: str) -> tuple[int, tuple[float, ...]]:
    """Return the rng seed of an incumbent that was trained alone, and its outcomes, without lost runs."""
    history = load(directory_of(folder, name)).history
    outcomes = (outcome_of(run_history, history.design.outcome_over) for run_history in history.runs.values())
    return history.plan.experiment.rng_seed, tuple(outcome for outcome in outcomes if outcome is not None)


def report_of(folder: Path, name: str) -> Path:
    """Write the report of an experiment, and return its page."""
    directory = directory_of(folder, name)
    write_report(directory)
    return directory / PAGE


def _launcher(question: StreamQuestion) -> Launcher:
    return make_launcher(asked_launcher(question.launcher, "[launcher]", {"launcher": "name"}))
