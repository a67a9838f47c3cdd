"""Rebuild and print the verdict of an experiment directory, or of a joint experiment, from the journals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.design.design import Contrast
from esper_ab.live.console import waiting
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.joint_directory import PLAN_NAME, is_joint, read_joint
from esper_ab.report.build import Report, build_report, printed
from esper_ab.verdict.requirement import Requirement, parse_requirement, require

if TYPE_CHECKING:
    from esper_ab.verdict.comparison import Comparison

_STORED = ("json", "md")  # forms that others read elsewhere, so they are not translated for this screen


def write_report(experiment_dir: Path) -> Report:
    """Analyse the journal and write the report files; this takes a few seconds."""
    with waiting("writing the report"):
        return build_report(experiment_dir)


def parse_requirements(
    texts: Iterable[str], groups: Sequence[str], comparisons: Iterable[Contrast]
) -> list[Requirement]:
    """Parse the texts of --fail-unless. Raises UsageError as `parse_requirement` does."""
    return [parse_requirement(text, groups, comparisons) for text in texts]


def show_answer(directory: Path, texts: Sequence[str] = (), form: str = "brief") -> None:
    """Write the report and print it in one of these forms.

    "brief" is the verdict, "text" is one screen, "whole" is everything, and "md" is Markdown. `texts` are the
    conditions of --fail-unless. Raises ConditionNotMet if a condition does not hold.
    """
    if is_joint(directory):
        _show_joint(directory, texts, form)
        return
    paths = write_report(directory)
    history = paths.content.history
    requirements = parse_requirements(texts, history.groups, history.design.comparisons)
    shown = printed(paths, form)
    click.echo(shown if form in _STORED else typeable(shown))
    _require(requirements, paths.content.comparisons)


def _show_joint(directory: Path, texts: Sequence[str], form: str) -> None:
    if form == "md":
        raise UsageError("--format md is only for a single experiment; a joint experiment has text and json")
    # Imported here, because it needs scipy, which --help does not.
    from esper_ab.readers.joint import judge_directory
    from esper_ab.report.joint import render_joint_brief, render_joint_json, write_joint_report
    from esper_ab.report.text import render_text

    joint = read_joint(directory)
    plan = read_plan(directory / PLAN_NAME)
    with waiting("writing the report"):
        result = judge_directory(directory, joint, plan)
        document = write_joint_report(directory, result)
    requirements = parse_requirements(texts, plan.groups, plan.design.comparisons)
    if form == "json":
        click.echo(render_joint_json(result), nl=False)
    elif form in ("text", "whole"):
        click.echo(typeable(render_text(document, whole=form == "whole")), nl=False)
    else:
        click.echo(typeable(render_joint_brief(result, directory / PAGE)))
    _require(requirements, result.judged.comparisons)


def _require(requirements: Sequence[Requirement], comparisons: Sequence[Comparison]) -> None:
    """Raise ConditionNotMet if a requirement does not hold; print on stderr what those that hold leave open."""
    for note in require(requirements, comparisons):
        click.echo(typeable(f"note: {visible_line(note)}"), err=True)
