"""`run_ab_test`: an experiment from Python, on the engine that `esper-ab launch` uses, and what came of each run.

It may be called from a script without an `if __name__ == "__main__":` guard, from a notebook and from a test: worker
processes do not import the caller's main module (contracts/own_packages.py).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

import click
import msgspec

from esper_ab.api.arguments import arguments
from esper_ab.api.declared import ABExperiment, ExperimentBuilder, parse_declaration
from esper_ab.api.results import Results, early_end
from esper_ab.api.setting_names import in_python, spelled
from esper_ab.contracts.errors import EsperError, UsageError, WorkerFailed, WorkerHung
from esper_ab.contracts.experiment_files import check_name
from esper_ab.contracts.settings import NonNegativeInt, PositiveInt
from esper_ab.control.rules.workers import Limits
from esper_ab.execution.answer import write_report
from esper_ab.execution.job import AskedJob, carry_out, describe, one_part, plan_job
from esper_ab.execution.launching import make_launcher
from esper_ab.launchers import Launcher
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.launcher import AskedLauncher
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


def run_ab_test(
    experiment: ABExperiment, output_dir: str | Path = "experiments", parallel_runs: bool = True,
    max_parallel_runs: int | None = None, retry_failed_runs: bool = True, max_retries: int = 2, **more: Unpack[More],
) -> Results:  # fmt: skip
    """Train every variant `runs_per_variant` times and compare them; returns when all is done.

    The experiment directory is `output_dir`/NAME and must not exist; `name=` gives it another name than the
    experiment's. `max_parallel_runs`: runs that train at the same time, at most; None: as many as the devices carry.
    The runs of a replicate train together, one per variant, unless fewer than that are allowed: then one after the
    other, as with `parallel_runs=False`, which trains one run at a time. A run whose worker dies is taken up again from
    its last checkpoint, on the same random draws, at most `max_retries` times without a new record; then its replicate
    is given up for every variant. `retry_failed_runs=False`: at the first death. `verbose=True`: the plan, and a live
    view. `launcher="inline"`: threads of this process, for debuggers; `launcher="ray"`: a cluster, with `ray_address`,
    `ray_label` and `ray_wait` as the flags have them.

    A run that failed is a RunResult without success, and so is all that was left when too much failed to go on
    (`Results.error`). Raises UsageError before anything starts; Interrupted after Ctrl-C; DiskFull.
    """
    if isinstance(experiment, ExperimentBuilder):
        raise UsageError("run_ab_test: the experiment is not built yet; end it with .build()")
    if not isinstance(experiment, ABExperiment):
        expected = "expected an ABExperiment, as create_experiment(…).build() is"
        raise UsageError(f"run_ab_test: {expected}, not {experiment!r}")
    told = arguments("run_ab_test", {
        "parallel_runs": parallel_runs, "max_parallel_runs": max_parallel_runs, "retry_failed_runs": retry_failed_runs,
        "max_retries": max_retries, **more,
    }, _All)  # fmt: skip
    own = {key: told.pop(key) for key in AskedLauncher.__struct_fields__ if key in told}
    declared = parse_declaration(experiment, Path.cwd())
    watched, retries = told.get("verbose", False), told["max_retries"] if told["retry_failed_runs"] else 0
    failure: EsperError | None = None
    with spelled(in_python()):
        launcher = make_launcher(AskedLauncher(**own))
        _check_process(launcher)
        check_tracking(declared.tracking)
        job = plan_job(AskedJob(
            parts=one_part(_limited(declared.asked, told)), output_dir=Path(output_dir), tracking=declared.tracking,
            about=declared.about,
        ), launcher)  # fmt: skip
        if watched:
            click.echo(describe(job))
        try:
            carry_out(job, watched=watched, limits=Limits(deaths=1 + retries))
        except (WorkerFailed, WorkerHung) as error:
            failure = error
    content = write_report(job.directory).content
    return Results(job.directory, content, early_end(failure, job.directory, content.history))


def _check_process(launcher: Launcher) -> None:
    """UsageError where worker processes cannot be started, or would be started by accident."""
    if file := READING.get():
        raise UsageError(
            f"run_ab_test is called while {file} is read for its experiment, which `esper-ab launch` runs by itself; "
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


def _limited(asked: AskedExperiment, told: Mapping[str, Any]) -> AskedExperiment:
    """Give the experiment the name and the number of runs at the same time that the call asks for."""
    most, name = told["max_parallel_runs"], told.get("name", "")
    if not told["parallel_runs"] and (most or 1) > 1:
        raise UsageError(f"max_parallel_runs {most} without parallel runs, which is one at a time: choose one")
    if name:
        check_name(name, "name")
    most = most if told["parallel_runs"] else 1
    return msgspec.structs.replace(asked, name=name or asked.name, max_parallel=most or asked.max_parallel)
