"""`esper-ab judge`: judge outcomes of runs done elsewhere, by a plan from `esper-ab design` or without a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._external import RULE, as_in_python, columns_of, external_options, printed, status_of
from esper_ab.commands._options import RecordingCommand
from esper_ab.commands._parameters import Flags, json_flag, valued
from esper_ab.commands._questions import answers_to
from esper_ab.contracts.errors import Unanswered, UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.readers.joint_directory import refuse_joint

if TYPE_CHECKING:
    from esper_ab.api.external import OutcomeVerdicts
    from esper_ab.verdict.observations import Observations
    from esper_ab.verdict.scale import Scale

_RULE = (*RULE, "rows", "paired")  # flags that a plan replaces


@command_with(
    "esper-ab judge plan.json results.csv",
    "esper-ab judge plan.json digits=experiments/ONE mixture=experiments/OTHER",
    "esper-ab judge plan.json results.csv --fail-unless 'new better-than old'",
    "esper-ab judge results.csv --margin 2",
    "esper-ab judge results.csv --margin 25 --columns group=algorithm,outcome=return",
    "esper-ab judge wide.csv --margin 2 --groups baseline,tuned",
    cls=RecordingCommand,
)
@click.argument("words", metavar="[PLAN] FILE|[TASK=]EXPERIMENT…", nargs=-1, required=True)
@external_options("scores", "columns", "groups", "figure", "verbose")
@json_flag
@valued(
    "--fail-unless",
    "REQUIREMENT",
    "Exit with status 12 if the verdict does not support it, as in 'new better-than old'; of several tasks, "
    "better-than asks about their mean, not-worse-than about each. Repeatable.",
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
    columns: str,
    groups: str,
    **options: Any,
) -> int:
    """Judge outcomes of runs made elsewhere by PLAN, noting deviations; or, without PLAN, explore them.

    FILE is a CSV file with a row per run. Its columns are group, seed (or pair), outcome (empty for a failed run) and,
    if the plan has tasks, task. Instead of FILE, name an experiment directory, or one per task. Each look is taken
    once all of its runs are present.

    A CSV file without PLAN is explored, which confirms nothing; --margin and the flags below it replace the plan. In
    each task, runs with the same seed form a pair. Pairs with the same value in a column named cluster count as one.
    If no seed occurs in two groups, or if the file has a column run instead of seed, the runs are not paired.
    """
    # Imported here, so that --help needs no scipy.
    from esper_ab.api.external import judged
    from esper_ab.readers.external_plan import read_plan
    from esper_ab.readers.scales import read_by_task
    from esper_ab.verdict.requirement import parse_requirement, require

    wide: tuple[str, ...] = ()
    if groups:
        wide = tuple(name.strip() for name in groups.split(","))
    table = TableShape(columns_of(columns), wide)
    output = {name: options.pop(name) for name in ("figure", "json", "verbose")}
    if len(words) == 1:
        if requirements:
            raise UsageError("--fail-unless needs a plan, because results without a plan are exploratory")
        explored = _explore(Path(words[0]), table, options)
        click.echo(printed(explored, **output), nl=False)
        return status_of(explored.comparisons)
    _refuse_tables(words)
    given = [name for name in _RULE if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    if given:
        raise UsageError(f"--{given[0]} is only for a CSV file without a plan; a plan already contains this setting")
    plan = read_plan(Path(words[0]))
    asked = [parse_requirement(text, plan.groups, plan.design.comparisons) for text in requirements]
    verdicts = judged(plan, _read(words[1:], table, plan.scales), read_by_task(options["scores"]))
    click.echo(printed(verdicts, **output), nl=False)
    for note in require(asked, verdicts.comparisons):
        click.echo(typeable(f"note: {visible_line(note)}"), err=True)
    return status_of(verdicts.comparisons)


def _refuse_tables(words: Sequence[str]) -> None:
    """Raise UsageError if the first of several words is no plan but a table, a folder or another kind of file."""
    first = Path(words[0])
    if first.suffix == ".json" or not first.exists():
        return  # the reader of plans says what is wrong
    if first.is_dir() or not read_regular(first).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        raise UsageError(
            f"{first} is no plan, and without a plan judge reads one CSV file, not {len(words)}: put all runs into one "
            "file with the columns group, seed and outcome, one row per run"
        )


def _explore(file: Path, table: TableShape, rule: Flags) -> OutcomeVerdicts:
    """Explore the outcomes in a CSV file; ask what only the user can answer."""
    # Imported here, so that --help needs no scipy.
    from esper_ab.api.external import explored
    from esper_ab.readers.csv_file import read_csv

    if file.is_dir():
        raise UsageError(
            f"{file} is a folder, but judge needs a plan and outcomes, or one CSV file; "
            f"`{shell_command('report', file)}` shows the verdict of an experiment"
        )
    if file.suffix == ".json" and rule["margin"] is None:
        raise UsageError(f"judge {file}: name the outcomes as well, as in `esper-ab judge plan.json results.csv`")
    groups = table.groups
    while True:
        try:
            return explored(read_csv(file, table.columns, groups), as_in_python(rule))
        except Unanswered as error:
            answers = answers_to(error, "judge")
            groups = answers.pop("groups", groups)
            rule = rule | answers


class TableShape(NamedTuple):
    """How to read a CSV file."""

    columns: Mapping[str, str]  # our name -> the file's
    groups: tuple[str, ...]  # columns of one group each; (): a row is a run


def _read(words: Sequence[str], table: TableShape, scales: Sequence[Scale]) -> Observations:
    """Read one CSV file, or experiment directories."""
    # As above.
    from esper_ab.readers.csv_file import read_csv
    from esper_ab.readers.joint import read_experiments

    named = [_named(text) for text in words]
    if len(named) == 1 and not named[0][1].is_dir():
        return read_csv(named[0][1], table.columns, table.groups)
    if any(table):
        raise UsageError("--columns and --groups apply to a CSV file; experiment directories have no columns")
    for _, folder in named:
        refuse_joint(folder, "judge", by_task=True)
    return read_experiments(named, scales)


def _named(text: str) -> tuple[str, Path]:
    """Split TASK=PATH, where TASK and PATH may contain "="; if the whole text is an existing path, there is no task."""
    splits = [(text[:place], Path(text[place + 1 :])) for place, char in enumerate(text) if char == "="]
    if not splits or Path(text).exists():
        return "", Path(text)
    for task, path in splits:
        if path.exists():
            return task, path
    return splits[0]
