"""The answer of a gate, from the report of its experiment: for programs, for a terminal and for a pull request."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from esper_ab.analysis.reused_runs import reused_runs
from esper_ab.campaign.answering import parse_requirements
from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.errors import ConditionNotMet
from esper_ab.contracts.files_below import write_below
from esper_ab.gate.comment import comment
from esper_ab.gate.measured import GATE_FILE, SCHEMA
from esper_ab.gate.question import BASE, HEAD, GateQuestion
from esper_ab.gate.spent import run_seconds, spent_seconds
from esper_ab.report.build import Report
from esper_ab.report.verdict_json import indented
from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.floats import Floats
from esper_ab.stats.least_pairs import unseen_rate
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.requirement import require
from esper_ab.verdict.verdict import Verdict

_UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.NO_INFERENCE})


@dataclass(frozen=True, kw_only=True)
class GateAnswer:
    """What a gate found."""

    verdict: str  # as in verdict.json: NOT WORSE, BETTER, WORSE, IDENTICAL, EQUIVALENT, INCONCLUSIVE, BLOCKED, …
    passed: bool  # whether the exit status is 0
    exit_status: int  # 0 or, if the claim is not shown, that of --fail-unless
    complaint: str  # why it did not pass, in one line; "" if it did
    lines: tuple[str, ...]  # the headline, then warnings, which begin with "! ", and what stays open
    markdown: str  # at most 15 lines, for a comment
    directory: Path
    report: Path  # the page
    document: dict[str, Any]  # as in gate.json


def answer_of(question: GateQuestion, directory: Path, report: Report) -> GateAnswer:
    """Return the answer that a report gives, and keep it in the directory."""
    content = report.content
    (comparison,) = content.comparisons
    requirements = parse_requirements([question.requirement], content.groups, content.design.comparisons)
    complaint = ""
    notes: list[str] = []
    try:
        notes = require(requirements, content.comparisons)
    except ConditionNotMet as error:
        complaint = as_in_file(str(error))
    if question.undecided == "pass" and comparison.verdict in _UNDECIDED:
        notes = [complaint] if complaint else notes
        complaint = ""
    if comparison.verdict == Verdict.IDENTICAL:
        share = round(100.0 * unseen_rate(len(comparison.pairs)))
        notes = [f"a change that matters for less than {share} % of seeds may have shown in none of these pairs"]
    document = _document(question, directory, report, comparison, complaint)
    write_below(directory, GATE_FILE, indented(document) + b"\n")
    return GateAnswer(
        verdict=comparison.verdict,
        passed=not complaint,
        exit_status=ConditionNotMet.exit_code if complaint else 0,
        complaint=complaint,
        lines=tuple(map(as_in_file, (*comparison.answer, *(f"note: {note}" for note in notes)))),
        markdown=comment(document, comparison),
        directory=directory,
        report=directory / PAGE,
        document=document,
    )


def as_in_file(text: str) -> str:
    """Return a text of the report with settings as gate.toml and pytest name them: a gate has no flags for them."""
    return text.replace("--outcome-range", "outcome_range")


def _document(
    question: GateQuestion, directory: Path, report: Report, comparison: Comparison, complaint: str
) -> dict[str, Any]:
    """Return the answer for programs. Every key is documented in docs/gate.md."""
    history = report.content.history
    facts = history.plan.trainer
    assert facts is not None, "a gate trains with a trainer"
    states = facts.code_states
    effect = comparison.effect
    kept_runs = reused_runs(history)
    return {
        "schema": SCHEMA,
        "verdict": comparison.verdict,
        "passed": not complaint,
        "complaint": complaint,
        "claim": question.requirement,
        "headline": as_in_file(comparison.headline),
        "warnings": tuple(map(as_in_file, comparison.warnings)),
        "estimate": comparison.estimate,
        "low": comparison.low,
        "high": comparison.high,
        "level": str(comparison.level),
        "margin": comparison.design.margin,
        "pairs": len(comparison.pairs),
        "most_pairs": history.replicates,
        "runs": sum(run.evaluation is not None for run in history.runs.values()),
        "reused": {reused.group: len(reused.runs) for reused in kept_runs},
        "reused_days": max((reused.days_old for reused in kept_runs), default=None),
        "minutes": question.minutes,
        "seconds": round(spent_seconds(directory), 1),
        "finished": history.finished,
        "states": {
            group: {"words": states[group].words, "commit": states[group].commit, "sealed": states[group].sealed}
            for group in (BASE, HEAD)
        },
        "subject": question.subject_digest,
        "run_seconds": run_seconds(history),
        "sd_of_differences": (effect.sd or None) if isinstance(effect, AdjustedDifference) else None,
        "sd_of_base": _sd(comparison.pairs.b),
        "directory": str(directory),
        "report": str(directory / PAGE),
    }


def _sd(outcomes: Floats) -> float | None:
    """Return the standard deviation between runs; None if there are too few, or if they do not vary."""
    return (float(np.std(outcomes, ddof=1)) or None) if len(outcomes) > 1 else None
