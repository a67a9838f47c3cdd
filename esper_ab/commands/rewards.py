"""`esper-ab rewards`: what rewards pay for known behaviours, before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from esper_ab.commands import _completing as completing
from esper_ab.commands._exit_status import epilog
from esper_ab.contracts import catalog
from esper_ab.contracts.appraisal import AppraisalQuestion, AppraisedReward
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import Arithmetic, GroupSettings
from esper_ab.execution import appraisal as execution
from esper_ab.settings.assignments import GROUP_KEYS, convert_value, did_you_mean, read_assignment

_SECTIONS = ("growth", "reward")


@click.command(epilog=epilog(
    "esper-ab rewards", "esper-ab rewards shaped mine.py:reward --task digits --schedules 128",
    "esper-ab rewards simplified --set reward.pbrs_weight=0.1 --out appraisals/weaker-potential",
))  # fmt: skip
@click.argument("rewards", metavar="[MODE | FILE:FUNCTION]…", nargs=-1, shell_complete=completing.rewards)
@click.option("--task", shell_complete=completing.tasks, default="digits", show_default=True, metavar="NAME",
              help="What hosts learn.")
@click.option("--data-dir", default="", metavar="DIR", help="Where a task's data is, if it does not ship.")
@click.option("--schedules", type=click.IntRange(2), default=64, show_default=True, metavar="N", help="Random "
              "schedules, among which best of n is.")
@click.option("--hosts", type=click.IntRange(1), default=2, show_default=True, metavar="N", help="Of each behaviour.")
@click.option("--search", "searched", type=click.IntRange(0), default=48, show_default=True, metavar="N",
              help="Behaviours that the search for each reward tries; 0: no search.")
@click.option("--steps", type=click.IntRange(2), default=25, show_default=True, metavar="N", help="Host epochs, and "
              "decisions, per episode.")
@click.option("--set", "assignments", shell_complete=completing.assignment, multiple=True, metavar="KEY=VALUE",
              help="A setting of reward or growth, for all. Repeatable.")
@click.option("--rng-seed", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="Root of all "
              "randomness.")
@click.option("--device", default="cpu", show_default=True, metavar="NAME", help="torch device for the hosts.")
@click.option("--kernel", type=click.Choice(["auto", "torch"]), default="auto", show_default=True, help="What trains "
              "hosts on a CPU; auto: the native kernel where it can be had.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where the files go. [default: "
              "appraisals/TASK-DIGEST]")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
def command(out: Path | None, json: bool, **options: Any) -> None:
    """Show what rewards pay for known behaviours, and what it costs to choose by them, before training.

    Without arguments: every reward mode of the catalogue.
    """
    question = make_question(**options)
    # Here, so that --help waits for neither scipy nor matplotlib.
    from esper_ab.analysis.appraisal import findings_of
    from esper_ab.live.console import waiting
    from esper_ab.report.appraised import render_appraisal_page, render_appraisal_text

    if out is not None:
        execution.check_folder(out)
    with waiting("growing hosts by every behaviour"):
        appraisal = execution.appraise(question)
    found = findings_of(appraisal)
    files = execution.save(appraisal, render_appraisal_page(found), out or execution.default_folder(appraisal))
    if json:
        click.echo(execution.encode(appraisal).decode().strip())
    else:
        click.echo(f"{render_appraisal_text(found)}\nappraisal: {files.data}\npage: {files.page}")


def make_question(
    *, rewards: Sequence[str], task: str, assignments: Sequence[str], kernel: str, **options: Any
) -> AppraisalQuestion:
    """Return the question that is asked; UsageError for an unknown task or setting, or a reward named twice."""
    known = catalog.names("workers.tasks")
    if task not in known:
        raise UsageError(f"no task {task!r}; {did_you_mean(task, known)}")
    twice = [name for name in rewards if list(rewards).count(name) > 1]
    if twice:
        raise UsageError(f"reward {twice[0]!r} is named twice; once is enough")
    settings = _settings(assignments)
    asked = tuple(
        AppraisedReward(name=mode, settings=msgspec.structs.replace(settings.reward, mode=mode))
        for mode in rewards or catalog.names("workers.rewards")
    )
    return AppraisalQuestion(
        task=task, slots=(), rewards=asked, growth=settings.growth,
        arithmetic=Arithmetic() if kernel == "torch" else None, **options,
    )


def _settings(assignments: Sequence[str]) -> GroupSettings:
    """Return the settings that `--set` makes of the defaults."""
    found: dict[str, dict[str, object]] = {section: {} for section in _SECTIONS}
    keys = {key: kind for key, kind in GROUP_KEYS.items() if key.partition(".")[0] in _SECTIONS}
    for text in assignments:
        one = read_assignment(text, f"--set {text}")
        if one.key == "reward.mode":
            raise UsageError(f"--set {text}: name rewards as arguments, as in esper-ab rewards sparse")
        if one.key not in keys:
            raise UsageError(f"--set {text}: no setting of reward or growth; {did_you_mean(one.key, keys)}")
        section, _, name = one.key.partition(".")
        found[section][name] = convert_value(one, keys)
    default = GroupSettings()
    return msgspec.structs.replace(
        default, growth=msgspec.structs.replace(default.growth, **found["growth"]),
        reward=msgspec.structs.replace(default.reward, **found["reward"]),
    )
