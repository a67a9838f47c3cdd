"""`esper-ab list`: list the experiment directories below a folder, newest first."""

from __future__ import annotations

import json as json_module
import time
from collections import Counter
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._parameters import json_flag, switch, valued
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.readers.listed import Listed, list_runs
from esper_ab.verdict.verdict import CLAIMS, DIFFERENT, Verdict

_HEADINGS = ("experiment", "state", "done", "last event", "groups", "verdict")
_MOST_TOLD = 3  # comparisons whose verdicts are listed one by one
_THAN = "than"
_FOLLOW_S = 5  # seconds between two writes with --follow


@command_with("esper-ab list", "esper-ab list experiments --html experiments/index.html --follow")
@click.argument("folder", metavar="[DIR]", default="experiments", type=click.Path(path_type=Path, file_okay=False))
@valued(
    "--html",
    "FILE",
    "Write the list as a page with links to the reports.",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
)
@switch("--follow", "With --html: rewrite the page every few seconds until Ctrl-C; a browser reloads it automatically.")
@json_flag
def command(folder: Path, page: Path | None, follow: bool, json: bool) -> None:
    """List the experiments below DIR [default: experiments], newest first, with progress and verdicts."""
    if page is not None and json:
        raise click.UsageError("--html and --json exclude each other")
    if follow and page is None:
        raise click.UsageError("--follow needs --html")
    if not folder.is_dir():
        raise UsageError(f"no folder '{folder}': name the folder that holds the experiment directories")
    if page is not None:
        from esper_ab.report.listing import write_listing  # needs jinja2, which a list in the terminal does not

        refresh_s = _FOLLOW_S
        if not follow:
            refresh_s = 0
        write_listing(folder, page, refresh_s=refresh_s)
        click.echo(f"page: {page}")
        while follow:
            time.sleep(_FOLLOW_S)
            write_listing(folder, page, refresh_s=_FOLLOW_S)
        return
    experiments = list_runs(folder)
    if json:
        click.echo(json_module.dumps([asdict(experiment) for experiment in experiments], indent=2))
    elif experiments:
        click.echo(typeable(_table(experiments)))
    else:
        click.echo(f"no experiment directory below {folder}")


def _table(experiments: list[Listed]) -> str:
    rows = [_HEADINGS, *map(_cells, experiments)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS) - 1)]
    lines = []
    for row in rows:
        padded_cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*padded_cells, row[-1]]).rstrip())
    return "\n".join(lines)


def _summarise_verdicts(verdicts: tuple[str, ...]) -> str:
    """Return the verdicts, "a - b: VERDICT", as one cell that fits on a screen.

    Each says which group is better or worse than which; if there are many, than how many.
    """
    parted_verdicts = [_parted(text) for text in verdicts]
    if len(verdicts) <= _MOST_TOLD:
        return "; ".join(_told(a, b, verdict) for a, b, verdict in parted_verdicts)
    counts = Counter(_claim_start(a, b, verdict) for a, b, verdict in parted_verdicts)
    cells = []
    for words, n in counts.most_common():
        if words.endswith(_THAN):
            cells.append(f"{words} {n}")
        else:
            cells.append(f"{n} {words}")
    return f"{len(verdicts)} comparisons: {'; '.join(cells)}"


def _parted(text: str) -> tuple[str, str, str]:
    pair, _, verdict = text.rpartition(": ")
    a, _, b = pair.partition(" - ")
    return a, b, verdict


def _told(a: str, b: str, verdict: str) -> str:
    """Write "a BETTER than b", "a EQUIVALENT to b", or "a - b: INCONCLUSIVE" for a verdict that claims nothing."""
    if verdict not in CLAIMS:
        return f"{a} - {b}: {verdict}"
    if verdict == Verdict.EQUIVALENT:
        return f"{a} {verdict} to {b}"
    word, _, size = verdict.partition(", ")
    claim = f"{a} {word} {_THAN} {b}"
    if size:
        claim += f", {size}"
    return claim


def _claim_start(a: str, b: str, verdict: str) -> str:
    if verdict not in DIFFERENT:
        return verdict
    comma = "," if ", " in verdict else ""
    return f"{a} {verdict}{comma} {_THAN}"


def _local(wall_time: str) -> str:
    """Return a wall time in this machine's time zone."""
    if not wall_time:
        return ""
    try:
        return f"{datetime.fromisoformat(wall_time).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):  # a date in year 1 or 9999 can overflow in another time zone
        return wall_time


def _cells(listed_experiment: Listed) -> tuple[str, ...]:
    """Return the cells of an experiment, in the order of the headings."""
    done_words = ""
    if listed_experiment.done is not None:
        done_words = f"{int(100 * listed_experiment.done)} %"
    cells = (
        listed_experiment.experiment_dir,
        listed_experiment.state,
        done_words,
        _local(listed_experiment.last_event),
        ",".join(listed_experiment.groups),
        listed_experiment.problem or _summarise_verdicts(listed_experiment.verdicts),
    )
    return tuple(map(visible_line, cells))
