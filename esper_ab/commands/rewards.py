"""`esper-ab rewards`: what rewards pay for known behaviours, before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import PATH, hosts_options, shared_options
from esper_ab.contracts.reward_audit import RewardAuditQuestion
from esper_ab.execution import reward_audit as execution
from esper_ab.settings.assignments import read_assignment
from esper_ab.settings.reward_audit import KERNELS, make_question

_DEFAULT = RewardAuditQuestion(rewards=())


@click.command(epilog=epilog(
    "esper-ab rewards", "esper-ab rewards shaped mine.py:reward --task digits --schedules 128",
    "esper-ab rewards simplified --set reward.pbrs_weight=0.1 --out reward-audits/weaker-potential",
))  # fmt: skip
@click.argument("rewards", metavar="[MODE | FILE:FUNCTION]…", nargs=-1)
@hosts_options("task", "data_dir")
@click.option("--slots", default="", metavar="A,B,…",
              help="Slots that may grow, in network order. [default: all]")
@click.option("--schedules", type=click.IntRange(2), default=_DEFAULT.schedules, show_default=True, metavar="N",
              help="Random schedules, among which best of n is.")
@click.option("--hosts", type=click.IntRange(1), default=_DEFAULT.hosts, show_default=True, metavar="N",
              help="Of each behaviour.")
@click.option("--search", "searched", type=click.IntRange(0), default=_DEFAULT.searched, show_default=True, metavar="N",
              help="Behaviours that the search for each reward tries; 0: no search.")
@click.option("--steps", type=click.IntRange(2), default=_DEFAULT.steps, show_default=True, metavar="N",
              help="Host epochs, and decisions, per episode.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE",
              help="A setting of reward or growth, for all. Repeatable.")
@hosts_options("rng_seed", "device")
@click.option("--kernel", type=click.Choice(KERNELS), default=KERNELS[0], show_default=True,
              help="What trains hosts on a CPU; auto: the native kernel where it can be had.")
@click.option("--out", type=PATH, metavar="DIR", help="Where the files go. [default: "
              "reward-audits/TASK-DIGEST]")
@shared_options("json")
def command(out: Path | None, json: bool, slots: str, assignments: tuple[str, ...], **options: Any) -> None:
    """Show what rewards pay for known behaviours, and what it costs to choose by them, before training.

    Without arguments: every reward mode of the catalogue.
    """
    question = make_question(
        slots=tuple(filter(None, slots.split(","))),
        assignments=[read_assignment(text, f"--set {text}") for text in assignments], **options,
    )
    # Here, so that --help waits for neither scipy nor matplotlib.
    from esper_ab.analysis.reward_audit import findings_of
    from esper_ab.live.console import waiting
    from esper_ab.report.audited_rewards import render_reward_audit_page, render_reward_audit_text

    if out is not None:
        execution.check_folder(out)
    with waiting("growing hosts by every behaviour"):
        reward_audit = execution.audit(question)
    found = findings_of(reward_audit)
    files = execution.save(reward_audit, render_reward_audit_page(found), out or execution.default_folder(reward_audit))
    if json:
        click.echo(execution.encode(reward_audit).decode().strip())
    else:
        click.echo(f"{render_reward_audit_text(found)}\nreward audit: {files.data}\npage: {files.page}")

