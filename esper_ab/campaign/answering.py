"""Rebuild the report of a directory from its journals, and say what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.design.design import Contrast
from esper_ab.live.console import waiting
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.joint_directory import PLAN_NAME, Joint, is_joint, read_joint
from esper_ab.report.build import Report, build_report, ended_by, printed
from esper_ab.verdict.requirement import Requirement, parse_requirement, require

if TYPE_CHECKING:
    from esper_ab.journal.fold import History
    from esper_ab.verdict.comparison import Comparison

Form = Literal["brief", "text", "whole", "md", "json"]  # the verdict, one screen, everything, Markdown, JSON
_STORED = ("json", "md")  # forms that others read elsewhere, so they are not translated for this screen


@dataclass(frozen=True, kw_only=True)
class WrittenAnswer:
    """The answer of a directory whose report files have just been written."""

    groups: Sequence[str]
    contrasts: Sequence[Contrast]  # as planned
    comparisons: Sequence[Comparison]  # as judged
    text: str  # in the form that was asked for


def write_answer(directory: Path, form: Form) -> WrittenAnswer:
    """Write the report of an experiment, or of several with one answer; UsageError if it does not have this form."""
    if is_joint(directory):
        return _write_over_all(directory, form)
    report = write_report(directory)
    history = report.content.history
    return WrittenAnswer(
        groups=history.groups,
        contrasts=history.design.comparisons,
        comparisons=report.content.comparisons,
        text=printed(report, form, () if form in _STORED else _sentences_on_all(directory, history)),
    )


def _sentences_on_all(directory: Path, history: History) -> tuple[str, ...]:
    """Return a sentence per comparison on this experiment and those that it replicates, and one on changed code.

    Return () if it replicates none, or if one of them is not beside its directory, has not ended, or asks another
    question by now; `compare` says which.
    """
    if not history.plan.earlier:
        return ()
    # Imported here, because they need scipy, and most experiments replicate none.
    from esper_ab.readers.earlier import with_earlier
    from esper_ab.readers.same_question import same_question
    from esper_ab.report.confirmation import with_other_code
    from esper_ab.report.together import together

    sources = with_earlier(directory, history)
    if not sources:
        return ()
    try:
        return with_other_code(together(same_question(sources)))
    except UsageError:
        return ()


def write_report(experiment_dir: Path) -> Report:
    """Analyse the journal of an experiment and write the report files; this takes a few seconds."""
    with waiting("writing the report"):
        return build_report(experiment_dir)


def _write_over_all(directory: Path, form: Form) -> WrittenAnswer:
    """Write the report over all parts of a joint experiment."""
    if form == "md":
        raise UsageError("--format md is only for a single experiment; a joint experiment has text and json")
    # Imported here, because it needs scipy, which --help does not.
    from esper_ab.readers.joint import judge_directory
    from esper_ab.report.joint import render_joint_brief, render_joint_json, write_joint_report
    from esper_ab.report.text import render_text

    joint_experiment = read_joint(directory)
    plan = read_plan(directory / PLAN_NAME)
    with waiting("writing the report"):
        result = judge_directory(directory, joint_experiment, plan)
        document = write_joint_report(directory, result)
    if form == "json":
        text = render_joint_json(result)
    elif form == "brief":
        text = render_joint_brief(result, directory / PAGE)
    else:
        text = render_text(document, in_full=form == "whole")
    text = text.removesuffix("\n")
    return WrittenAnswer(
        groups=plan.groups,
        contrasts=plan.design.comparisons,
        comparisons=result.judged.comparisons,
        text=text if form == "json" else ended_by(text, _sentences_over_tasks(directory, joint_experiment)),
    )


def _sentences_over_tasks(directory: Path, joint_experiment: Joint) -> tuple[str, ...]:
    """Return a sentence per comparison on this experiment and those that it replicates; () as `_sentences_on_all`."""
    if not joint_experiment.earlier:
        return ()
    from esper_ab.readers.same_question_over_tasks import same_question_over_tasks, with_earlier_over_tasks  # as above
    from esper_ab.report.confirmation import with_other_code
    from esper_ab.report.together import together_over_tasks

    try:
        experiments = with_earlier_over_tasks(directory, joint_experiment)
        return with_other_code(together_over_tasks(same_question_over_tasks(experiments))) if experiments else ()
    except (JournalError, UsageError):
        return ()


def parse_requirements(
    texts: Iterable[str], groups: Sequence[str], contrasts: Iterable[Contrast], *, has_guardrails: bool = True
) -> tuple[Requirement, ...]:
    """Parse the texts of --fail-unless. Raises UsageError as `parse_requirement` does, which has the same arguments."""
    contrasts = tuple(contrasts)
    return tuple(parse_requirement(text, groups, contrasts, has_guardrails=has_guardrails) for text in texts)


def show_answer(answer: WrittenAnswer, form: Form, requirements: Iterable[Requirement] = ()) -> None:
    """Print an answer, then what the requirements leave open; raise ConditionNotMet if one does not hold."""
    click.echo(answer.text if form in _STORED else typeable(answer.text))
    for note in require(requirements, answer.comparisons):
        click.echo(typeable(f"note: {visible_line(note)}"), err=True)
