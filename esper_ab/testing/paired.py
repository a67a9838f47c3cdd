"""Runs the comparison of `assert_not_worse` between settings or functions, as a gate between states of the code."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esper_ab.analysis.reused_runs import reused_runs
from esper_ab.api.spelling import in_python, spelled
from esper_ab.api.training_declaration import NAMES, declare_training
from esper_ab.campaign.answering import parse_requirements, write_report
from esper_ab.campaign.campaign import Campaign, CampaignPlan
from esper_ab.campaign.directory import claim
from esper_ab.campaign.launcher import make_launcher
from esper_ab.campaign.planning import plan_campaign
from esper_ab.campaign.running import RunOptions, run
from esper_ab.contracts.errors import ConditionNotMet, OutOfTime
from esper_ab.control.rules.limits import Limits
from esper_ab.design.non_inferiority import EARLIEST_LOOK
from esper_ab.gate.budget import REPORT_S
from esper_ab.gate.fitting import cost_of, fit, with_kept_runs
from esper_ab.gate.question import GateQuestion
from esper_ab.settings.launcher import NOT_GIVEN
from esper_ab.settings.parts import Part
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.requirement import require


@dataclass(frozen=True, kw_only=True)
class PairedQuestion:
    """Two groups of one trainer, the first of which must not be worse."""

    caller: str  # for messages
    question: GateQuestion  # its trainer, outcome, margin and minutes
    groups: Mapping[str, Mapping[str, Any]]  # their settings
    settings: Mapping[str, Any]  # of the experiment
    folder: Path  # of its directory
    unsealed: tuple[Path, ...]  # folders that are no part of the code


@dataclass(frozen=True, kw_only=True)
class PairedAnswer:
    """What the pairs show."""

    lines: tuple[str, ...]  # the headline, and the warnings
    complaint: str  # why it is not shown that the first group is not worse; "": it is
    pairs: int
    most_pairs: int  # that the minutes pay for
    kept_runs: int  # that stood for runs
    directory: Path


def compare(paired: PairedQuestion) -> PairedAnswer:
    """Train both groups on the same seeds until the claim is decided or the minutes end.

    Raises UsageError before anything starts, and the other errors of an experiment.
    """
    begin_s = time.monotonic()
    launcher = make_launcher(NOT_GIVEN)
    question = paired.question
    with spelled(in_python(NAMES)):
        declaration = declare_training(paired.caller, question.train, paired.groups, _settings(paired), paired.folder)
        campaign = Campaign(
            parts=(Part(name="", asked=declaration.asked),),
            output_dir=paired.folder,
            unsealed=paired.unsealed,
            references=question.kept_runs,
        )
        plan = plan_campaign(campaign, launcher)
        cost = cost_of(plan.parts[0], question, ())
        plan = fit(plan, question, cost, None, time.monotonic() - begin_s)
        plan = with_kept_runs(plan, paired.unsealed)
    left_s = 60.0 * question.minutes - (time.monotonic() - begin_s) - REPORT_S
    limits = Limits(starts_s=max(0.0, left_s - cost.wave_s), ends_s=left_s)
    return _answer(paired, _run(plan, limits), plan.parts[0].plan.experiment.seeds)


def _settings(paired: PairedQuestion) -> dict[str, Any]:
    """Return the settings of the experiment, before its seeds are fitted to the minutes."""
    question = paired.question
    _, reference = paired.groups
    settings = {
        "control": reference,
        "margin": question.margin,
        "outcome_better": question.better,
        "claim": "not-worse",
        "seeds": EARLIEST_LOOK,
        "identical_after": LEAST_PAIRS,
        **paired.settings,
    }
    return settings | ({"outcome": question.outcome} if question.outcome else {})


def _run(plan: CampaignPlan, limits: Limits) -> Path:
    """Carry out the plan until the minutes end, and return its directory."""
    with claim(plan) as claimed_plan:
        with suppress(OutOfTime):  # the answer says how many pairs there are
            run(claimed_plan, RunOptions(watched=False, limits=limits))
        return claimed_plan.directory


def _answer(paired: PairedQuestion, directory: Path, most_pairs: int) -> PairedAnswer:
    content = write_report(directory).content
    group, reference = paired.groups
    requirements = parse_requirements(
        [f"{group} not-worse-than {reference}"], content.groups, content.design.comparisons
    )
    complaint = ""
    notes: list[str] = []
    try:
        notes = require(requirements, content.comparisons)
    except ConditionNotMet as error:
        complaint = str(error)
    (comparison,) = content.comparisons
    return PairedAnswer(
        lines=(*comparison.answer, *(f"note: {note}" for note in notes)),
        complaint=complaint,
        pairs=len(comparison.pairs),
        most_pairs=most_pairs,
        kept_runs=sum(len(reused.runs) for reused in reused_runs(content.history)),
        directory=directory,
    )
