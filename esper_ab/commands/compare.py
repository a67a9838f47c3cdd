"""`esper-ab compare`: what several experiments say together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands._external import external_options, printed, status_of
from esper_ab.commands._parameters import PATH, json_flag, valued
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import typeable
from esper_ab.readers.joint_directory import is_joint

if TYPE_CHECKING:
    from esper_ab.report.together import Together


@command_with(
    "esper-ab compare experiments/ONE experiments/OTHER",
    "esper-ab compare experiments/ONE experiments/OTHER --json",
)
@click.argument(
    "folders", metavar="EXPERIMENT EXPERIMENT…", nargs=-1, required=True, type=ExperimentDirectory(joint=True)
)
@external_options("control", "alpha", "scores", "figure")
@valued("--page", "FILE.html", "With different rng seeds: write the answer as a page; replaces a file.", type=PATH)
@external_options("verbose")
@json_flag
@click.pass_context
def command(
    context: click.Context,
    /,
    folders: tuple[Path, ...],
    control: str,
    alpha: float,
    scores: str,
    page: Path | None,
    **output: Any,
) -> int:
    """Compare the groups of several experiment directories, or join experiments of one question.

    With one rng seed, the experiments must have the same task, trainer, budget, outcome, margin, arithmetic, code and
    versions; otherwise the command exits with status 2 and lists the differences. Groups with equal settings count as
    one group, and their records must be equal. Runs with the same seed form a pair.

    With different rng seeds, they must have the same groups, task, trainer and outcome. Those of one plan are pooled as
    one larger experiment; those of different plans stand side by side, from three on with their random-effects mean.
    Experiments over the same tasks are compared on each of them and on their mean.
    """
    # Imported here, so that --help needs no scipy.
    from esper_ab.api.external import with_scores
    from esper_ab.readers.compared import compare_sources, read_sources
    from esper_ab.readers.same_question import on_other_seeds, same_question
    from esper_ab.readers.same_question_over_tasks import read_over_tasks, same_question_over_tasks
    from esper_ab.readers.scales import read_by_task
    from esper_ab.report.together import together, together_over_tasks
    from esper_ab.verdict.analysis_plan import Rule

    if any(is_joint(folder) for folder in folders):
        question = same_question_over_tasks(read_over_tasks(folders))
        _refuse(context, "control", "alpha", "scores")
        return _show_together(together_over_tasks(question), page=page, **output)
    sources = read_sources(folders)
    if on_other_seeds(sources):
        _refuse(context, "control", "alpha", "scores")
        return _show_together(together(same_question(sources)), page=page, **output)
    if page is not None:
        raise UsageError("--page is for experiments with different rng seeds; these have one, so use --figure FILE.svg")
    verdicts = compare_sources(sources, Rule(control=control, alpha=alpha))
    click.echo(printed(with_scores(verdicts, read_by_task(scores)), **output), nl=False)
    return status_of(verdicts.comparisons)


def _refuse(context: click.Context, *names: str) -> None:
    """Raise UsageError if a flag is given that experiments on different rng seeds have no use for."""
    for name in names:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(
                f"--{name} is not for experiments with different rng seeds: each is judged by its own plan, and all "
                "together by the rule of their plan"
            )


def _show_together(answer: Together, *, figure: Path | None, page: Path | None, json: bool, verbose: bool) -> int:
    """Print what experiments of one question say together, as JSON or text, and return the exit status."""
    from esper_ab.report.replications import replications_json, replications_report  # with scipy
    from esper_ab.report.text import render_text

    if figure is not None:
        from esper_ab.report.figures.external import write_figure  # with matplotlib
        from esper_ab.report.figures.forest import forest_figure  # likewise

        write_figure(forest_figure(answer), figure)
    if page is not None:
        from esper_ab.contracts.files_below import write_below  # most calls write no page
        from esper_ab.report.page import render_page  # with matplotlib

        write_below(page.parent, page.name, render_page(replications_report(answer)).encode())
    if json:
        click.echo(replications_json(answer))
    else:
        click.echo(typeable(render_text(replications_report(answer), in_full=verbose)), nl=False)
    return status_of(comparison for item in answer.experiments for comparison in item.comparisons)
