"""Trackers: `esper-ab track`, and what starts one process per tracker beside a run and looks after it.

Light: the libraries of the trackers are loaded in their own processes only.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit
from uuid import uuid4

import click

from esper_ab.commands._completing import RunDirectory
from esper_ab.commands._examples import epilog
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.shell_line import typed

if TYPE_CHECKING:
    from esper_ab.contracts.messages import Progress
    from esper_ab.journal.events import AnyEvent
    from esper_ab.trackers.settings import Tracking
    from esper_ab.trackers.state import TrackerProgress
    from esper_ab.trackers.subject import Name

_POLL_S = 0.1
_PATIENCE_S = 20.0  # for trackers to catch up at the end of a run, before the command goes on without them
_SILENT_S = 15.0  # of `track`, before it says that nothing has been told
_TAG_CHARS = 64  # what W&B takes


@click.command(epilog=epilog(
    "esper-ab track runs/RUN --tensorboard",
    "esper-ab track runs/RUN --wandb offline --mlflow --uri http://localhost:5000",
))  # fmt: skip
@click.argument("run_dir", metavar="RUN", type=RunDirectory())
@click.option("--wandb", is_flag=False, flag_value="", metavar="[offline|online]", help="Weights & Biases. "
              "[default: WANDB_MODE, else online]")
@click.option("--tensorboard", is_flag=True, help="Event files in RUN/tensorboard.")
@click.option("--mlflow", is_flag=True, help="MLflow, at --uri.")
@click.option("--uri", metavar="URI", help="Of MLflow's server or store. [default: MLFLOW_TRACKING_URI, else MLflow's]")
@click.option("--wandb-entity", metavar="NAME", help="Team or user.")
@click.option("--wandb-project", metavar="NAME", help="[default: ab_test_NAME_DATE]")
@click.option("--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
def command(run_dir: Path, follow: bool, json: bool, **options: Any) -> int:
    """Fill trackers with what RUN has recorded, of a finished, running or stopped run; twice is the same as once.

    Without a tracker: those that follow RUN already. What is named here follows RUN when it is resumed or extended.
    """
    from esper_ab.contracts.errors import UsageError
    from esper_ab.journal.load import load
    from esper_ab.trackers.state import at_work, read_settings, save_settings, wanted
    from esper_ab.trackers.subject import NAMES

    load(run_dir)  # a damaged or absent journal is refused here
    before = read_settings(run_dir)
    asked = _asked(before, options)
    names = tuple(name for name in NAMES if options[name] not in (None, False)) or wanted(before)
    if not names:
        raise UsageError(f"{run_dir} is followed by no tracker: name one, as in --tensorboard; also --wandb, --mlflow")
    check_tracking(asked)
    for name in names:
        if at_work(run_dir, name):
            see = f"`{_logs(run_dir, name)}`"
            raise UsageError(f"{run_dir}: {name} follows this run already; see {see}")
    save_settings(run_dir, asked)
    return _fill(run_dir, names, live=follow, as_json=json)


def _asked(before: Tracking, options: dict[str, Any]) -> Tracking:
    """What followed the run, and what is named now."""
    import msgspec

    from esper_ab.contracts.errors import UsageError

    if options["uri"] is not None and not options["mlflow"]:
        raise UsageError("--uri is MLflow's; give --mlflow, too")
    changed: dict[str, Any] = {}
    if options["wandb"] is not None:
        changed["wandb"] = wandb_mode("--wandb", options["wandb"])
    changed |= {name: True for name in ("tensorboard", "mlflow") if options[name]}
    for option, key in (("uri", "mlflow_uri"), ("wandb_entity",) * 2, ("wandb_project",) * 2):
        if options[option] is not None:
            changed[key] = options[option]
    asked = msgspec.structs.replace(before, **changed)
    if asked.wandb == "off" and (asked.wandb_entity or asked.wandb_project):
        raise UsageError("--wandb-entity and --wandb-project go with --wandb")
    return asked


def wandb_mode(flag: str, asked: str | None) -> Literal["online", "offline"]:
    """What was asked for with `flag`, or WANDB_MODE, or online; UsageError for what is neither."""
    from esper_ab.contracts.errors import UsageError

    origin, mode = (flag, asked) if asked else ("WANDB_MODE", os.environ.get("WANDB_MODE") or "online")
    if mode not in ("online", "offline"):
        raise UsageError(f"{origin} {mode!r}: online or offline; leave wandb out for none")
    return "online" if mode == "online" else "offline"


def tracking_of(options: dict[str, Any]) -> Tracking:
    """The flags of `launch`; checked. UsageError, before anything starts, for what cannot be tracked with."""
    from esper_ab.contracts.errors import UsageError
    from esper_ab.settings.assignments import split_commas
    from esper_ab.trackers.settings import Tracking
    from esper_ab.trackers.subject import NAMES

    names = split_commas(options["track"], "--track") if options["track"] is not None else []
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise UsageError(f"--track {unknown[0]}: no such tracker; there are {', '.join(NAMES)}")
    for flag in ("wandb_mode", "wandb_entity", "wandb_project"):
        if options[flag] is not None and "wandb" not in names:
            raise UsageError(f"--{flag.replace('_', '-')} goes with --track wandb")
    tracking = Tracking(
        wandb=wandb_mode("--wandb-mode", options["wandb_mode"]) if "wandb" in names else "off",
        wandb_entity=options["wandb_entity"] or "", wandb_project=options["wandb_project"] or "",
        tensorboard="tensorboard" in names, mlflow="mlflow" in names,
    )  # fmt: skip
    check_tracking(tracking)
    return tracking


def check_tracking(tracking: Tracking) -> None:
    """UsageError for a library that is not installed, and for what a tracker would refuse later."""
    from esper_ab.contracts.errors import UsageError
    from esper_ab.trackers.settings import NOT_IN_A_PROJECT, PROJECT_CHARS
    from esper_ab.trackers.state import wanted

    for name in wanted(tracking):
        needed: list[str] = [name]
        if name == "mlflow" and _store(tracking).startswith("sqlite"):
            needed.append("sqlalchemy")
        for module in needed:
            if importlib.util.find_spec(module) is None:
                raise UsageError(f"{name} needs {module}, which is not installed: pip install 'esper-ab[{name}]'")
    if urlsplit(tracking.mlflow_uri).password:
        raise UsageError("the URI of MLflow holds a password, which would be kept in the run directory; use "
                         "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD")  # fmt: skip
    if len(tracking.wandb_project) > PROJECT_CHARS or set(NOT_IN_A_PROJECT) & set(tracking.wandb_project):
        raise UsageError(f"W&B project {tracking.wandb_project!r}: W&B takes {PROJECT_CHARS} characters at most, and "
                         f"none of {' '.join(NOT_IN_A_PROJECT)}")  # fmt: skip
    for group, tags in tracking.tags.items():
        for tag in tags:
            if not 0 < len(tag) <= _TAG_CHARS:
                raise UsageError(f"tag {tag!r} of {group}: 1 to {_TAG_CHARS} characters, which is what trackers take")


def _store(tracking: Tracking) -> str:
    """What MLflow will open; its own default is a file of SQLite."""
    return tracking.mlflow_uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:"


def start_tracking(run_dir: Path, tracking: Tracking) -> str:
    """Remember `tracking` and start one process per tracker, which follows the journal of `run_dir` to its end.

    `run_dir` exists; its journal may be a few seconds away. They have no terminal, no parent and low priority; what
    they say is in RUN/logs. Raises nothing: what cannot be started is one line on stderr. Libraries that are absent
    are refused by `check_tracking`, which is to be called before the run directory is made. Returns the word that the
    progress of these processes is marked with, "" when they could not be started.
    """
    from esper_ab.trackers.state import TrackerProgress, log_file, save_settings, wanted, write_progress

    started = uuid4().hex
    try:
        save_settings(run_dir, tracking)
        for name in wanted(tracking):
            log_file(run_dir, name).parent.mkdir(exist_ok=True)
            write_progress(run_dir, name, TrackerProgress(state="starting", started=started))
            # By way of a shell that leaves at once, so that no process of this one's is left to be waited for.
            subprocess.run(
                ["sh", "-c", '"$@" </dev/null >>"$0" 2>&1 &', log_file(run_dir, name).absolute(),
                 *_process(run_dir, name, live=True, started=started)],
                check=True, start_new_session=True, stdin=subprocess.DEVNULL, env=_environment(),
            )  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        _warn(f"trackers cannot be started ({error}); the run goes on, `{typed('track', run_dir)}` can do it later")
        return ""
    return started


def _process(run_dir: Path, name: Name, *, live: bool, started: str) -> Sequence[str]:
    line = child_command("esper_ab.trackers.process", str(run_dir.absolute()), name)
    return [*line, "--live", started] if live else [*line, started]


def _environment() -> dict[str, str]:
    """One thread: the cores are the training's."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Trackers:
    """An observer that starts the trackers once there is a journal to follow, and says when one has failed."""

    def __init__(self, run_dir: Path, tracking: Tracking) -> None:
        from esper_ab.trackers.state import wanted

        self._run_dir, self._tracking = run_dir, tracking
        self._started: str | None = None  # what marks the progress of what was started here; "": nothing could be
        self._unheard = set(wanted(tracking))  # those that have not failed so far

    def observe(self, event: AnyEvent | Progress | str) -> None:
        """Called on the observers' thread, never on the barrier's path."""
        from esper_ab.journal.events import Event, PointReleased

        if self._started is None and isinstance(event, Event):
            self._started = start_tracking(self._run_dir, self._tracking)
        elif isinstance(event, PointReleased):
            self._tell_failures()

    def settle(self, kind: type[BaseException] | None, *error: object) -> None:
        """At the end of a run that succeeded: wait a little for the trackers, and name those that are not done."""
        if kind is not None or not self._started:
            return
        deadline = time.monotonic() + _PATIENCE_S
        left = set(self._unheard)
        with suppress(KeyboardInterrupt):
            while left and time.monotonic() < deadline:
                left = {name for name in left if self._works(name)}
                time.sleep(_POLL_S if left else 0)
        self._tell_failures()
        for name in sorted(self._unheard):
            progress = self._progress(name)
            if name in left:
                _warn(f"{name} goes on with what is left; `{_logs(self._run_dir, name)}` shows it")
            elif progress is None or progress.state != "done":
                _warn(_broken(self._run_dir, name, "its process is gone"))

    def _works(self, name: Name) -> bool:
        from esper_ab.trackers.state import at_work

        progress = self._progress(name)  # before the lock, which it takes first and lets go of last
        if progress is None or progress.state == "starting":
            return True
        return progress.state == "following" and at_work(self._run_dir, name)

    def _progress(self, name: Name) -> TrackerProgress | None:
        """Of the process that was started here; None as long as it has said nothing."""
        from esper_ab.trackers.state import read_progress

        progress = read_progress(self._run_dir, name)
        return progress if progress is not None and progress.started == self._started else None

    def _tell_failures(self) -> None:
        for name in sorted(self._unheard):
            progress = self._progress(name)
            if progress is not None and progress.state == "failed":
                self._unheard.discard(name)
                _warn(_broken(self._run_dir, name, progress.detail))


def _logs(run_dir: Path, name: str) -> str:
    return typed("logs", run_dir, f"tracker-{name}")


def _broken(run_dir: Path, name: str, why: str) -> str:
    return f"{name} has stopped: {why}; the run is not concerned, `{typed('track', run_dir)}` fills in what is missing"


def _warn(text: str) -> None:
    from esper_ab.contracts.visible import visible_line

    with suppress(OSError):
        sys.stderr.write(f"warning: {visible_line(text)}\n")


def _awaited(run_dir: Path, name: Name, child: subprocess.Popen[bytes], started: str) -> int:
    """Exit status of a tracker; a line on stderr when it takes long before it has told anything."""
    from esper_ab.trackers.state import read_progress

    with suppress(subprocess.TimeoutExpired):
        return child.wait(_SILENT_S)
    progress = read_progress(run_dir, name)
    if progress is None or progress.started != started or not progress.lines:
        _warn(f"{name} has told nothing for {_SILENT_S:.0f} s and goes on trying: can its server be reached?")
    return child.wait()


def _fill(run_dir: Path, names: Sequence[Name], *, live: bool, as_json: bool) -> int:
    """Run the trackers side by side and wait for them; exit status 1 when one fails."""
    import json

    from esper_ab.trackers.state import TrackerProgress, log_file, read_progress

    (run_dir / "logs").mkdir(exist_ok=True)
    children, started = {}, uuid4().hex
    for name in names:
        with log_file(run_dir, name).open("ab") as log:
            children[name] = subprocess.Popen(
                _process(run_dir, name, live=live, started=started), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=_environment(),
            )
    try:
        statuses = {name: _awaited(run_dir, name, child, started) for name, child in children.items()}
    except BaseException:
        for child in children.values():
            child.kill()
            child.wait()
        raise
    told = {name: read_progress(run_dir, name) or TrackerProgress(state="failed") for name in names}
    for name in names:
        if statuses[name] and (told[name].started != started or not told[name].detail):
            told[name] = TrackerProgress(state="failed", detail=f"its process ended with {statuses[name]}")
    if as_json:
        click.echo(json.dumps({
            name: {"state": one.state, "where": one.where, "lines": one.lines, "detail": one.detail}
            for name, one in told.items()
        }))  # fmt: skip
    for name, one in told.items():
        if statuses[name]:
            _warn(f"{name}: {one.detail}")
        elif not as_json:
            click.echo(f"{name}: {one.lines} lines of the journal in {one.where}")
    return 1 if any(statuses.values()) else 0
