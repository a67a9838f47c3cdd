"""`audit_rewards`: the results of `esper-ab growth rewards` as Python objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from esper_ab.analysis.reward_audit import RewardAuditFindings, findings_of
from esper_ab.api.arguments import arguments, path_of
from esper_ab.api.spelling import in_python, spelled
from esper_ab.campaign.reward_audit import audit, check_folder, save
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.reward_audit import make_question
from esper_ab.settings.schema import SHORT

_NAMES = {"out": "output_dir"}  # of settings in messages, where they differ


class RewardAuditOptions(TypedDict, total=False):
    """Options of a reward audit, named like the flags of `esper-ab growth rewards`, except `searched` for --search."""

    task: str
    data_dir: str
    slots: Sequence[str]
    schedules: int
    hosts: int
    searched: int
    steps: int
    rng_seed: int
    device: str
    kernel: str  # "auto", "torch"


def audit_rewards(
    *rewards: str,
    settings: Mapping[str, object] | None = None,
    output_dir: str | Path | None = None,
    **options: Unpack[RewardAuditOptions],
) -> RewardAuditFindings:
    """Compute the return that each reward gives to known behaviours, and the outcome lost by choosing by return.

    `rewards` are modes or FILE:FUNCTION; by default, the whole catalogue is audited. `settings` are reward and growth
    settings for all rewards, by dotted key. If `output_dir` is given, the data and the page are written there. Users'
    rewards run in a child process. Raises UsageError, with a one-line message, for invalid arguments.
    """
    audit_options = arguments("audit_rewards", options, RewardAuditOptions)
    folder = None if output_dir is None else path_of("output_dir", output_dir)
    with spelled(in_python(_NAMES)):
        return _audited(rewards, settings, folder, audit_options)


def _audited(
    rewards: Sequence[str],
    settings: Mapping[str, object] | None,
    folder: Path | None,
    audit_options: Mapping[str, Any],
) -> RewardAuditFindings:
    assignments = [
        Assignment(SHORT.get(key, key), value, f"settings[{key!r}]", Path.cwd(), is_text=False)
        for key, value in (settings or {}).items()
    ]
    question = make_question(rewards=rewards, assignments=assignments, **audit_options)
    if folder is not None:
        check_folder(folder)
    findings = findings_of(audit(question))
    if folder is not None:
        # needs matplotlib, which the numbers do not
        from esper_ab.report.page import render_page
        from esper_ab.report.reward_audit import reward_audit_report

        save(findings.reward_audit, render_page(reward_audit_report(findings)), folder)
    return findings
