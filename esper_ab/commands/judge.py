"""`esper-ab judge`: judge outcomes of runs done elsewhere, by a plan from `esper-ab design` or without a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._external import RULE, as_in_python, columns_of, external_options, printed, status_of
from esper_ab.commands._options import RecordingCommand
from esper_ab.commands._parameters import Flags, json_flag, valued
from esper_ab.commands._questions import answers_to
from esper_ab.contracts.errors import Unanswered, UsageError
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.readers.joint_directory import is_experiment, refuse_joint

if TYPE_CHECKING:
    from esper_ab.api.external import OutcomeVerdicts
    from esper_ab.campaign.answering import Form
    from esper_ab.readers.reading_rules import ReadingRules
    from esper_ab.verdict.analysis_plan import AnalysisPlan
    from esper_ab.verdict.observations import Observations

_HEAD_BYTES = 4096
_READING = ("columns", "groups", "runs", "at", "mean_last")  # flags on how files are read
_RULE = (*RULE, "rows", "level", "closed_items", "paired")  # flags that a plan replaces


@command_with(
    "esper-ab judge results.csv --margin 25",
    "esper-ab judge small-*/ large-*/ --margin 20 --runs '{group}-s{seed}'",
    "esper-ab judge plan.json results.csv --fail-unless 'new better-than old'",
    cls=RecordingCommand,
)
@click.argument("words", metavar="[PLAN] PATH…|[TASK=]EXPERIMENT…", nargs=-1, required=True)
@external_options("scores", *_READING, "figure", "verbose")
@json_flag
@valued(
    "--fail-unless",
    "REQUIREMENT",
    "Exit with status 12 unless the verdict supports it, as in 'new better-than old'. Repeatable.",
    "requirements",
    multiple=True,
)
@external_options(*_RULE)
@click.pass_context
def command(
    context: click.Context,
    /,
    words: tuple[str, ...],
    requirements: tuple[str, ...],
    **options: Any,
) -> int:
    """Judge outcomes of finished runs by PLAN or, without PLAN, explore them.

    PATH is a CSV file with a row per run (group, seed, outcome; empty if the run failed), or a file or folder that a
    training library wrote for each run. Rows may be items of runs, such as questions or episodes. An experiment
    directory has a plan of its own; with PLAN, it may be one PATH, or TASK=DIRECTORY.

    --margin and the flags below it are for exploring. Flags with a value take TASK=VALUE,… for several tasks.
    """
    # Imported here, so that --help needs no scipy.
    from esper_ab.api.external import judged
    from esper_ab.readers.external_plan import read_plan
    from esper_ab.readers.scales import read_by_task
    from esper_ab.verdict.requirement import parse_requirement, require

    if len(words) == 1 and is_experiment(Path(words[0])):
        return _judge_experiment(
            context, Path(words[0]), requirements, json=options["json"], verbose=options["verbose"]
        )
    reading_options = {name: options.pop(name) for name in _READING}
    output = {name: options.pop(name) for name in ("figure", "json", "verbose")}
    if not _begins_with_plan(words, margin=options["margin"]):
        if requirements:
            raise UsageError("--fail-unless needs a plan, because results without a plan are exploratory")
        answer = _explore(words, reading_options, options)
        click.echo(printed(answer, **output), nl=False)
        return status_of(answer.comparisons)
    rule_flags = [
        name for name in _RULE if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if rule_flags:
        raise UsageError(f"--{rule_flags[0]} is only for outcomes without a plan; a plan already contains this setting")
    plan = read_plan(Path(words[0]))
    if len(words) == 1:
        raise UsageError(f"judge {words[0]}: name the outcomes as well, as in `esper-ab judge plan.json results.csv`")
    asked_requirements = [parse_requirement(text, plan.groups, plan.design.comparisons) for text in requirements]
    verdicts = judged(plan, _read(plan, words[1:], reading_options), read_by_task(options["scores"]))
    click.echo(printed(verdicts, **output), nl=False)
    for note in require(asked_requirements, verdicts.comparisons):
        click.echo(typeable(f"note: {visible_line(note)}"), err=True)
    return status_of(verdicts.comparisons)


def _judge_experiment(
    context: click.Context, directory: Path, requirements: Sequence[str], *, json: bool, verbose: bool
) -> int:
    """Answer as `report` does: an experiment is judged by its own plan."""
    # Imported here, so that --help needs no scipy.
    from esper_ab.campaign.answering import parse_requirements, show_answer, write_answer

    for name in (*_READING, *_RULE, "scores", "figure"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{flag} does not apply to {directory}, an experiment with a plan of its own; leave it out"
            )
    form: Form = "text"
    if json:
        form = "json"
    elif verbose:
        form = "whole"
    answer = write_answer(directory, form)
    show_answer(answer, form, parse_requirements(requirements, answer.groups, answer.contrasts))
    return status_of(answer.comparisons)


def _begins_with_plan(words: Sequence[str], margin: str | None) -> bool:
    """True if the first word is a plan or is meant to be one: a JSON file that has no outcomes, without a margin."""
    from esper_ab.formats.known import format_of  # needs numpy, as above

    first_path = Path(words[0])
    if first_path.is_dir():
        return False
    if not first_path.exists():
        return first_path.suffix == ".json"  # the reader of plans says what is wrong
    with open_to_read(first_path) as file:
        head = file.read(_HEAD_BYTES)
    if b'"esper_ab_plan"' in head:
        return True
    if first_path.suffix != ".json" and not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return False
    return format_of(first_path) is None or (len(words) > 1 and margin is None)


def _explore(words: Sequence[str], reading_options: Flags, rule: Flags) -> OutcomeVerdicts:
    """Explore the outcomes in files and folders; ask what only the user can answer."""
    # Imported here, so that --help needs no scipy.
    from esper_ab.api.external import explored
    from esper_ab.readers.read_outcomes import read_outcomes

    paths = [Path(word) for word in words]
    name_lines: tuple[str, ...] = ()
    while True:
        try:
            outcomes = read_outcomes(paths, _reading(reading_options, rule["rows"], rule["control"]))
            if outcomes.name_lines != name_lines:
                click.echo("\n".join(map(visible_line, outcomes.name_lines)), err=True)
            name_lines = outcomes.name_lines
            options = as_in_python(rule)
            if outcomes.better:
                options = {"better": outcomes.better} | options
            return explored(outcomes.observations, options)
        except Unanswered as error:
            answers = answers_to(error, "judge")
            reading_options = reading_options | {
                name: answer for name, answer in answers.items() if name in reading_options
            }
            rule = rule | {name: answer for name, answer in answers.items() if name not in reading_options}


def _reading(flags: Flags, rows: str | None = None, control: str | None = None) -> ReadingRules:
    """Return how to read files, from the flags as click parsed them, or as the user answered; `rows`: what a row is."""
    from esper_ab.readers.reading_rules import ReadingRules  # with numpy
    from esper_ab.readers.steps import StepRule

    columns = flags["columns"]
    if isinstance(columns, str):
        columns = columns_of(columns)
    groups = flags["groups"]
    if isinstance(groups, str):
        groups = tuple(name.strip() for name in groups.split(",")) if groups else ()
    steps = StepRule(flags["at"], flags["mean_last"])
    return ReadingRules(
        names=columns,
        groups=groups,
        runs=flags["runs"],
        rows=rows,
        control=control or "",
        steps=steps,
    )


def _read(plan: AnalysisPlan, words: Sequence[str], reading_options: Flags) -> Observations:
    """Read files and folders, experiment directories, or the order of trials of an evaluation."""
    # As above.
    from esper_ab.readers.joint import read_experiments
    from esper_ab.readers.order_file import read_orders
    from esper_ab.readers.read_outcomes import read_outcomes
    from esper_ab.verdict.row_questions import refuse_for_plan

    if plan.evaluation is not None:
        if any(reading_options.values()):
            raise UsageError("--columns, --groups, --runs, --at and --mean-last do not apply to an order of trials")
        return read_orders(plan, [Path(word) for word in words])
    named_paths = [_named(text) for text in words]
    if not any(task for task, _ in named_paths) and not all(is_experiment(path) for _, path in named_paths):
        try:
            outcomes = read_outcomes([path for _, path in named_paths], _reading(reading_options))
        except Unanswered as error:
            refuse_for_plan(error)
        for line in outcomes.name_lines:
            click.echo(visible_line(line), err=True)
        return outcomes.observations
    if any(reading_options.values()):
        raise UsageError("--columns and --groups apply to files; experiment directories have no columns")
    for _, folder in named_paths:
        refuse_joint(folder, "judge", by_task=True)
    return read_experiments(named_paths, plan.scales)


def _named(text: str) -> tuple[str, Path]:
    """Split TASK=PATH, where TASK and PATH may contain "="; if the whole text is an existing path, there is no task."""
    splits = [(text[:place], Path(text[place + 1 :])) for place, char in enumerate(text) if char == "="]
    if not splits or Path(text).exists():
        return "", Path(text)
    for task, path in splits:
        if path.exists():
            return task, path
    return splits[0]
