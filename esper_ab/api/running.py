"""`run_ab_test`: an experiment from Python, on the engine that `esper-ab launch` uses, and what came of each run.

It may be called from a script without an `if __name__ == "__main__":` guard, from a notebook and from a test: worker
processes do not import the caller's main module (contracts/own_packages.py).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

import click
import msgspec

from esper_ab.api.arguments import arguments
from esper_ab.api.asked import DeclaredExperiment, parse_declaration
from esper_ab.api.builder import ExperimentBuilder
from esper_ab.api.declared import ABExperiment
from esper_ab.api.results import Results, early_end
from esper_ab.api.spelling import ARGUMENTS, in_python, spelled
from esper_ab.contracts.errors import EsperError, UsageError, WorkerFailed, WorkerHung
from esper_ab.contracts.settings import NonNegativeInt, PositiveInt
from esper_ab.contracts.visible import visible_line
from esper_ab.control.rules.liveness import Limits
from esper_ab.execution import experiment as execution
from esper_ab.execution.answer import write_report
from esper_ab.execution.launching import launcher_as_asked
from esper_ab.execution.leftover import is_leftover
from esper_ab.launchers import Launcher
from esper_ab.live.on_stderr import Narration
from esper_ab.plan.experiment_directory import check_name
from esper_ab.report.build import ReportPaths
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.launcher import UNSAID, AskedLauncher
from esper_ab.trackers.settings import check_tracking

READING: ContextVar[str] = ContextVar("reading", default="")  # the file that is being read for its experiment


class More(TypedDict, total=False):
    """Further arguments of `run_ab_test`; None: not said."""

    name: str
    verbose: bool
    launcher: str | None
    transport: Literal["ipc", "tcp"] | None
    ray_address: str | None
    ray_label: dict[str, str] | None
    ray_wait: Annotated[float, msgspec.Meta(ge=0)] | None


class _All(More, total=False):
    output_dir: Any
    parallel_runs: bool
    max_parallel_runs: PositiveInt | None
    retry_failed_runs: bool
    max_retries: NonNegativeInt


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Options of execution: output folder, runs at the same time, and handling of failures."""

    output_dir: Path
    parallel_runs: bool = True
    max_parallel_runs: int | None = None
    retry_failed_runs: bool = True
    max_retries: int = 2
    name: str = ""  # of the experiment directory; "": that of the experiment
    launcher: AskedLauncher = UNSAID
    watched: bool = False  # a live view
    narrated: bool = False  # a line on stderr for everything that is recorded
    words: Mapping[str, str] = field(default_factory=lambda: ARGUMENTS)  # key -> what it is called here


def run_ab_test(
    experiment: ABExperiment, output_dir: str | Path = "experiments", parallel_runs: bool = True,
    max_parallel_runs: int | None = None, retry_failed_runs: bool = True, max_retries: int = 2, **more: Unpack[More],
) -> Results:  # fmt: skip
    """Train every variant `runs_per_variant` times and compare them; returns when all is done.

    The experiment directory is `output_dir`/NAME and must not exist; `name=` gives it another name than the
    experiment's. `max_parallel_runs`: runs that train at the same time, at most; None: as many as the devices carry.
    The runs of a replicate train together, one per variant, unless fewer than that are allowed: then one after the
    other, as with `parallel_runs=False`, which trains one run at a time. A run whose worker dies is taken up again from
    its last checkpoint, on the same random draws, at most `max_retries` times at one milestone; then its replicate is
    given up for every variant. `retry_failed_runs=False`: at the first death. `verbose=True`: the plan, and a live
    view. `launcher="inline"`: threads of this process, for debuggers; `launcher="ray"`: a cluster, with `ray_address`,
    `ray_label` and `ray_wait` as the flags have them.

    A run that failed is a RunResult without success, and so is all that was left when too much failed to go on
    (`Results.error`). Raises UsageError before anything starts; Interrupted after Ctrl-C; DiskFull.
    """
    _check_experiment(experiment)
    told = arguments("run_ab_test", {
        "parallel_runs": parallel_runs, "max_parallel_runs": max_parallel_runs, "retry_failed_runs": retry_failed_runs,
        "max_retries": max_retries, **more,
    }, _All)  # fmt: skip
    launcher = {key: told.pop(key) for key in AskedLauncher.__struct_fields__ if key in told}
    runner = Runner(
        output_dir=Path(output_dir), launcher=AskedLauncher(**launcher), watched=told.pop("verbose", False), **told
    )
    planned = prepare(parse_declaration(experiment, Path.cwd()), runner)
    if runner.watched:
        show_plan(planned)
    paths, failure = conduct(planned, runner)
    path, content = planned.experiment_dir, paths.content
    return Results(path, content, early_end(failure, path, content.history))


def _check_experiment(experiment: object) -> None:
    if isinstance(experiment, ExperimentBuilder):
        raise UsageError("run_ab_test: the experiment is not built yet; end it with .build()")
    if not isinstance(experiment, ABExperiment):
        expected = "expected an ABExperiment, as create_experiment(…).build() is"
        raise UsageError(f"run_ab_test: {expected}, not {experiment!r}")


def prepare(what: DeclaredExperiment, runner: Runner, *, only_plan: bool = False) -> execution.PlannedExperiment:
    """Plan what is declared; whatever can be refused is refused here, and nothing is started or written yet.

    `only_plan`: as `plan_experiment` has it.
    """
    if not runner.parallel_runs and (runner.max_parallel_runs or 1) > 1:
        most = runner.max_parallel_runs
        raise UsageError(f"max_parallel_runs {most} without parallel runs, which is one at a time: choose one")
    if runner.name:
        check_name(runner.name, "name")
    with spelled(in_python(runner.words)):
        launcher = launcher_as_asked(runner.launcher)
    _check_process(launcher)
    asked = msgspec.structs.replace(_schedule(what, runner), name=runner.name or what.asked.name)
    experiment_dir = runner.output_dir / asked.name
    if experiment_dir.exists() and not is_leftover(experiment_dir):
        raise UsageError(f"{experiment_dir} exists already; give this run another name (name=), or another folder")
    check_tracking(what.tracking)
    with spelled(in_python(runner.words)):
        planned = execution.plan_experiment(asked, runner.output_dir, launcher, only_plan=only_plan)
    return replace(planned, tracking=what.tracking, about=what.about)


def conduct(planned: execution.PlannedExperiment, runner: Runner) -> tuple[ReportPaths, EsperError | None]:
    """Carry the plan out and report. Returns the report, and the error that ended the experiment early, if one did."""
    deaths = 1 + (runner.max_retries if runner.retry_failed_runs else 0)
    failure: EsperError | None = None
    try:
        also = [Narration()] if runner.narrated else []
        limits = Limits(deaths=deaths)
        with spelled(in_python(runner.words)):
            launcher = launcher_as_asked(runner.launcher)
            execution.carry_out(planned, launcher, watched=runner.watched, limits=limits, also=also)
    except (WorkerFailed, WorkerHung) as error:
        failure = error
    return write_report(planned.experiment_dir), failure


def show_plan(planned: execution.PlannedExperiment) -> None:
    """Print the plan as `esper-ab launch` does, below what its author says of it."""
    variants = planned.about.get("variants", {})
    said = [planned.about.get("description", ""), *(f"  {name}: {one['description']}" for name, one in variants.items()
                                                  if one["description"])]  # fmt: skip
    for line in filter(None, said):
        click.echo(visible_line(line))
    click.echo(execution.format_plan(planned))


def _check_process(launcher: Launcher) -> None:
    """UsageError where worker processes cannot be started, or would be started by accident."""
    if file := READING.get():
        raise UsageError(
            f"run_ab_test is called while {file} is read for its experiment, which `esper-ab run` runs by itself; "
            'put the call below `if __name__ == "__main__":`'
        )
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):  # as multiprocessing itself asks, and then fails half-way
        raise UsageError(
            "run_ab_test is called while multiprocessing imports the main script into another process; put the call "
            'below `if __name__ == "__main__":`'
        )
    if process.daemon and launcher.child_processes:
        raise UsageError(
            "run_ab_test is called in a daemonic process of multiprocessing, which may not start workers; call it in "
            'the main process, or with launcher="inline"'
        )


def _schedule(what: DeclaredExperiment, runner: Runner) -> AskedExperiment:
    """Ask for as many runs at the same time as the runner allows.

    Fewer than a replicate has variants means: one after the other. The plan says so; results do not depend on it.
    """
    asked = what.asked
    most = runner.max_parallel_runs if runner.parallel_runs else 1
    if most is None:
        return asked
    if most < len(asked.groups) and asked.placement == "auto":
        asked = msgspec.structs.replace(asked, placement="sequence")
    return msgspec.structs.replace(asked, max_parallel=most)
