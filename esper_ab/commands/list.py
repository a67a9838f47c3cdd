"""`esper-ab list`: the experiment directories below a folder, newest first."""

from __future__ import annotations

import json as json_module
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible_line
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import holder
from esper_ab.live.status import state_of
from esper_ab.verdict.word import Verdict

_HEADINGS = ("run", "state", "done", "last event", "groups", "verdict")
_MOST_TOLD = 3


@dataclass(frozen=True, kw_only=True)
class Listed:
    """An experiment directory as the list shows it."""

    experiment_dir: str
    state: str  # as in `status`, or "damaged", "empty"
    done: float | None = None  # share of the planned training episodes and evaluations
    last_event: str = ""  # ISO 8601
    groups: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()  # "a - b: VERDICT", of a finished one that has its report
    problem: str = ""  # of a damaged one, or of its report


@click.command(epilog=epilog("esper-ab list", "esper-ab list experiments --json"))
@click.argument("folder", metavar="[DIR]", default="experiments", type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
def command(folder: Path, json: bool) -> None:
    """List the experiments below DIR [default: experiments], newest first, with progress and verdicts."""
    if not folder.is_dir():
        raise UsageError(f"no folder {folder}: name the one that holds the experiment directories")
    found = list_runs(folder)
    if json:
        click.echo(json_module.dumps([asdict(one) for one in found], indent=2))
    elif found:
        click.echo(_table(found))
    else:
        click.echo(f"no experiment directory below {folder}")


def list_runs(folder: Path) -> list[Listed]:
    """Every experiment directory below `folder`; one that cannot be read is listed with its problem."""
    found = map(_look, _experiment_directories(folder))
    return sorted(found, key=lambda one: (one.last_event, one.experiment_dir), reverse=True)


def _experiment_directories(folder: Path) -> Iterator[Path]:
    for where, below, files in os.walk(folder):
        if JOURNAL_NAME in files:
            below.clear()
            yield Path(where)


def _look(experiment_dir: Path) -> Listed:
    held = holder(experiment_dir) is not None
    try:
        loaded = load(experiment_dir)
    except (JournalError, UsageError, OSError) as error:
        state = "damaged" if isinstance(error, JournalError) else "empty"
        if isinstance(error, OSError):
            state = "unreadable"
        return Listed(experiment_dir=str(experiment_dir), state=state, problem=str(error))
    history = loaded.history
    state = state_of(history, held=held)
    counted = [run for run in history.runs.values() if not (run.left_out or run.lost)]
    units = sum(run.spec.episodes + 1 for run in counted)
    done = sum(len(run.columns) + (run.evaluation is not None) for run in counted)
    verdicts, problem = _verdicts(experiment_dir, history) if state == "finished" else ((), "")
    return Listed(
        experiment_dir=str(experiment_dir), state=state, done=done / units if units else None,
        last_event=loaded.wall_time, groups=history.groups, verdicts=verdicts, problem=problem,
    )  # fmt: skip


def _verdicts(experiment_dir: Path, history: History) -> tuple[tuple[str, ...], str]:
    """Verdicts in the report of a finished run, none when it has not been built; why they cannot be told, if so."""
    path = experiment_dir / "verdict.json"
    try:
        found = [(one["a"], one["b"], one["verdict"]) for one in json_module.loads(path.read_bytes())["comparisons"]]
    except OSError:
        return (), ""
    except (ValueError, LookupError, TypeError):
        found = []
    words = [verdict for *_, verdict in found if verdict in tuple(Verdict)]
    planned = [(comparison.a, comparison.b) for comparison in history.design.comparisons]
    if [(a, b) for a, b, _ in found] == planned and len(words) == len(planned):
        return tuple(f"{a} - {b}: {verdict}" for a, b, verdict in found), ""
    remedy = shell_command("report", experiment_dir)
    return (), f"{path.name} is damaged or of another state of the experiment: `{remedy}` makes it again"


def _table(found: list[Listed]) -> str:
    rows = [_HEADINGS, *map(_cells, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS) - 1)]
    return "\n".join(
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


def _came_out(verdicts: tuple[str, ...]) -> str:
    """Verdicts in one cell; of many comparisons, how many have which verdict, because a line must fit a screen."""
    if len(verdicts) <= _MOST_TOLD:
        return "; ".join(verdicts)
    counted = Counter(said.rpartition(": ")[2] for said in verdicts)
    return f"{len(verdicts)} comparisons: {'; '.join(f'{count} {verdict}' for verdict, count in counted.most_common())}"


def _cells(one: Listed) -> tuple[str, ...]:
    done = "" if one.done is None else f"{int(100 * one.done)} %"
    last = f"{datetime.fromisoformat(one.last_event).astimezone():%Y-%m-%d %H:%M:%S}" if one.last_event else ""
    cells = (one.experiment_dir, one.state, done, last, ",".join(one.groups), one.problem or _came_out(one.verdicts))
    return tuple(map(visible_line, cells))
