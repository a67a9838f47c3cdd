"""`run_ab_test`: run an experiment from Python, with the same code as `esper-ab launch`, and return its results.

A script can call it without an `if __name__ == "__main__":` guard, because worker processes do not import the caller's
main module (contracts/own_packages.py). It can also be called in notebooks and tests.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

import click
import msgspec

from esper_ab.api.arguments import arguments, path_of
from esper_ab.api.builder import ExperimentBuilder
from esper_ab.api.declared import ABExperiment
from esper_ab.api.interrupting import interruptible
from esper_ab.api.requested import DeclaredExperiment, parse_declaration
from esper_ab.api.results import Results, early_end
from esper_ab.api.spelling import in_python, spelled
from esper_ab.campaign.answering import write_report
from esper_ab.campaign.campaign import Campaign, CampaignPlan
from esper_ab.campaign.description import describe
from esper_ab.campaign.directory import claim
from esper_ab.campaign.launcher import make_launcher
from esper_ab.campaign.planning import plan_campaign
from esper_ab.campaign.running import RunOptions, run
from esper_ab.contracts.errors import EsperError, UsageError, WorkerFailed, WorkerHung
from esper_ab.contracts.experiment_name import check_name
from esper_ab.contracts.settings import NonNegativeInt, PositiveInt
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.control.rules.limits import Limits
from esper_ab.launchers import Launcher
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.launcher import AskedLauncher
from esper_ab.settings.parts import Part
from esper_ab.settings.references import References, read_references
from esper_ab.trackers.settings import check_tracking

_RETRIES = 2
READING: ContextVar[str] = ContextVar("reading", default="")  # the experiment file that is being loaded


class More(TypedDict, total=False):
    """Optional arguments of `run_ab_test`; None means the default."""

    name: str
    verbose: bool
    launcher: str | None
    transport: Literal["ipc", "tcp"] | None
    ray_address: str | None
    ray_label: dict[str, str] | None
    ray_wait: Annotated[float, msgspec.Meta(ge=0)] | None
    references: str | Path | None
    references_limit: str | None


class RunArguments(More, total=False):
    """All arguments of `run_ab_test` that are checked by their types."""

    parallel_runs: bool
    max_parallel_runs: PositiveInt | None
    retry_failed_runs: bool
    max_retries: NonNegativeInt


def run_ab_test(
    experiment: ABExperiment,
    output_dir: str | Path = "experiments",
    parallel_runs: bool = True,
    max_parallel_runs: int | None = None,
    retry_failed_runs: bool = True,
    max_retries: int = _RETRIES,
    **options: Unpack[More],
) -> Results:
    """Train every variant `runs_per_variant` times, compare the variants, and return when all runs have ended.

    The experiment directory, `output_dir`/NAME, must not exist. NAME is the experiment's name unless `name` is given.
    `max_parallel_runs` is the largest number of runs that train at the same time; None means as many as the devices
    allow. The runs of a seed, one per variant, train together. If the limit is smaller than the number of variants, or
    with `parallel_runs=False`, the runs of a seed train one after the other.

    If a worker dies, its run resumes from the last checkpoint with the same random numbers. The seed is given up for
    every variant after `max_retries` retries without a new record or, with `retry_failed_runs=False`, after the first
    death. `verbose=True` prints the plan and shows a live view. `launcher="inline"` runs workers as threads of this
    process, for debuggers. `launcher="ray"` uses a cluster; `ray_address`, `ray_label` and `ray_wait` mean the same as
    the flags, and so do `references`, a folder of kept runs that are used again, and `references_limit`.

    A failed run is a RunResult without success. If too many runs fail, the experiment ends, its remaining runs count as
    failed, and `Results.error` gives the reason. Raises UsageError before anything starts, DiskFull, and after Ctrl-C
    KeyboardInterrupt, whose message has the command that resumes the experiment.
    """
    _check_built(experiment)
    options_by_name = arguments(
        "run_ab_test",
        {
            "parallel_runs": parallel_runs,
            "max_parallel_runs": max_parallel_runs,
            "retry_failed_runs": retry_failed_runs,
            "max_retries": max_retries,
            **options,
        },
        RunArguments,
    )
    declaration = parse_declaration(experiment, Path.cwd())
    with spelled(in_python()):
        return run_declared(
            "run_ab_test", declaration, output_dir, options_by_name, is_watched=options_by_name.get("verbose", False)
        )


def _check_built(experiment: object) -> None:
    """Raise UsageError if `experiment` is not an ABExperiment."""
    if isinstance(experiment, ExperimentBuilder):
        raise UsageError("run_ab_test: the experiment is not built yet; end it with .build()")
    if not isinstance(experiment, ABExperiment):
        expected = "expected an ABExperiment, as create_experiment(…).build() returns"
        raise UsageError(f"run_ab_test: {expected}, not {experiment!r}")


def run_declared(
    function: str,
    declaration: DeclaredExperiment,
    output_dir: str | Path,
    options_by_name: Mapping[str, Any],
    *,
    is_watched: bool,
    check_plan: Callable[[CampaignPlan], object] | None = None,
) -> Results:
    """Plan and run an experiment, and return its results.

    `function`: the name of the caller's, for messages; `options_by_name` has its other arguments by name. `check_plan`
    may raise UsageError before anything starts.
    """
    failure: EsperError | None = None
    launcher = make_launcher(_asked_launcher(options_by_name))
    _check_process(launcher, function)
    check_tracking(declaration.tracking)
    campaign = Campaign(
        parts=(Part(name="", asked=_limited(declaration.asked, options_by_name)),),
        output_dir=path_of("output_dir", output_dir),
        tracking=declaration.tracking,
        about=declaration.about,
        references=_references(options_by_name),
    )
    with interruptible(f"{function} was interrupted before the first run; nothing was recorded"):
        plan = plan_campaign(campaign, launcher)
    if check_plan is not None:
        check_plan(plan)
    if options_by_name.get("verbose", False):
        click.echo(typeable(describe(plan)))
    with claim(plan) as claimed_plan:
        directory = claimed_plan.directory
        with interruptible(f"{function} was interrupted; to go on: {shell_command('resume', directory)}"):
            try:
                run(claimed_plan, RunOptions(watched=is_watched, limits=_death_limit(options_by_name)))
            except (WorkerFailed, WorkerHung) as error:
                failure = error
    with interruptible(f"{function} was interrupted; `{shell_command('report', directory)}` shows the answer"):
        content = write_report(directory).content
    return Results(directory, content, early_end(failure, directory, content.history))


def _asked_launcher(options_by_name: Mapping[str, Any]) -> AskedLauncher:
    """Return the launcher options among the arguments of the call."""
    return AskedLauncher(
        **{key: options_by_name[key] for key in AskedLauncher.__struct_fields__ if key in options_by_name}
    )


def _references(options_by_name: Mapping[str, Any]) -> References | None:
    """Return the folder of kept runs among the arguments of the call; None if there is none."""
    folder = options_by_name.get("references")
    names = ("references", "references_limit")
    path = None if folder is None else path_of("references", folder)
    return read_references(path, options_by_name.get("references_limit"), names)


def _death_limit(options_by_name: Mapping[str, Any]) -> Limits:
    """Return how often the worker of a run may die before the seed is given up."""
    if not options_by_name.get("retry_failed_runs", True):
        return Limits(deaths=1)
    return Limits(deaths=1 + options_by_name.get("max_retries", _RETRIES))


def _check_process(launcher: Launcher, function: str) -> None:
    """Raise UsageError if this process cannot start workers, or if the call is in a file that is being imported."""
    if file := READING.get():
        raise UsageError(
            f"{function} is called while {file} is being loaded, but `esper-ab launch` runs the experiment itself; "
            'put the call below `if __name__ == "__main__":`'
        )
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):  # multiprocessing has the same check, but it would fail half-way
        raise UsageError(
            f"{function} is called while multiprocessing imports the main script into another process; put the call "
            'below `if __name__ == "__main__":`'
        )
    if process.daemon and launcher.child_processes:
        raise UsageError(
            f"{function} is called in a daemonic process of multiprocessing, which cannot start workers; call it in "
            'the main process, or use launcher="inline"'
        )


def _limited(asked_experiment: AskedExperiment, options_by_name: Mapping[str, Any]) -> AskedExperiment:
    """Apply the name and the limit on parallel runs from the call; UsageError if the arguments conflict."""
    most_parallel = options_by_name.get("max_parallel_runs")
    parallel = options_by_name.get("parallel_runs", True)
    name = options_by_name.get("name", "")
    if not parallel and (most_parallel or 1) > 1:
        raise UsageError(
            f"max_parallel_runs={most_parallel} contradicts parallel_runs=False, which trains one run at a time"
        )
    if name:
        check_name(name, "name")
    if not parallel:
        most_parallel = 1
    return msgspec.structs.replace(
        asked_experiment,
        name=name or asked_experiment.name,
        max_parallel=most_parallel or asked_experiment.max_parallel,
    )
