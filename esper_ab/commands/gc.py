"""`esper-ab gc`: give back what an experiment directory needs no more; its journal and its policies always stay."""

from __future__ import annotations

import json as json_module
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands._leftovers import files_below, leftovers
from esper_ab.commands._options import shared_options
from esper_ab.contracts.below import remove_below, remove_empty_below
from esper_ab.contracts.checkpoint_files import is_name
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.run_files import CHECKPOINTS
from esper_ab.contracts.shell_command import shell_command
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import Lock, holder
from esper_ab.live.console import CONSOLE_NAME
from esper_ab.live.status import state_of
from esper_ab.stats.text import counted

_DEPTH = 3  # of a checkpoint below the folder: GROUP/SEED/MILESTONE.pt


@dataclass(frozen=True, kw_only=True)
class Found:
    """Files of one experiment directory that can be removed."""

    experiment_dir: Path
    files: tuple[Path, ...]
    size_bytes: int
    kept: str  # what stays that would go if the experiment were finished; "" when nothing does


@click.command(epilog=epilog("esper-ab gc experiments/EXPERIMENT --dry-run", "esper-ab gc experiments/*"))
@click.argument("experiment_dirs", metavar="EXPERIMENT…", nargs=-1, required=True, type=ExperimentDirectory())
@click.option("--dry-run", is_flag=True, help="Say what would go and remove nothing.")
@shared_options("json")
def command(experiment_dirs: tuple[Path, ...], dry_run: bool, json: bool) -> None:
    """Remove checkpoints, temporary files and console output of EXPERIMENT….

    Journal, policies, experiment.toml, reports, logs and files that are not of this tool stay. Of an experiment that
    is not finished, what `resume` needs and the console's output stay, too. One in progress is refused, and then
    nothing of the others is removed either.
    """
    found = [removable(experiment_dir) for experiment_dir in experiment_dirs]
    for one in found:
        if not dry_run:
            remove(one)
    if json:
        click.echo(json_module.dumps([_tree(one, dry_run=dry_run) for one in found], indent=2))
        return
    for one in found:
        word, files = "would be removed" if dry_run else "removed", counted(len(one.files), "file")
        click.echo(f"{one.experiment_dir}: {files}, {one.size_bytes / 1e6:.1f} MB {word}{one.kept}")
        for path in one.files if dry_run else ():
            click.echo(f"  {path.relative_to(one.experiment_dir)}")


def removable(experiment_dir: Path) -> Found:
    """Find what can be removed of `experiment_dir`.

    UsageError when a process carries it out, when it is no experiment directory, or keeps its checkpoints elsewhere.
    """
    if by := holder(experiment_dir):
        stop = shell_command("stop", experiment_dir)
        raise UsageError(f"{experiment_dir} is in use by {by}; `{stop}` ends it; nothing was removed")
    folder = experiment_dir / CHECKPOINTS
    if folder.is_symlink():
        raise UsageError(
            f"{folder} is a symbolic link, and gc removes nothing outside an experiment directory; nothing was "
            f"removed: clear {folder.readlink()} yourself, or remove the link"
        )
    history = load(experiment_dir).history
    state = state_of(history, held=False)
    files = [*leftovers(experiment_dir), *_checkpoints(folder, history)]
    kept = f"; it is {state}, so what `{shell_command('resume', experiment_dir)}` needs was kept"
    if state == "finished":
        kept = ""
        files += [path for path in [experiment_dir / CONSOLE_NAME] if path.is_file()]
    size = sum(path.lstat().st_size for path in files)
    return Found(experiment_dir=experiment_dir, files=tuple(sorted(files)), size_bytes=size, kept=kept)


def remove(found: Found) -> None:
    """Remove what was found; UsageError when a process has begun to carry it out in between."""
    with closing(Lock(found.experiment_dir)):
        for path in found.files:
            remove_below(found.experiment_dir, path.relative_to(found.experiment_dir))
        for folder, _, _ in os.walk(found.experiment_dir / CHECKPOINTS, topdown=False):
            remove_empty_below(found.experiment_dir, Path(folder).relative_to(found.experiment_dir))


def _checkpoints(folder: Path, history: History) -> Iterator[Path]:
    """Checkpoints of runs that are complete; a run that is still to be finished starts again from its own."""
    needed = {folder / name for name, run in history.runs.items() if run.started and run.expected}
    for path in files_below(folder):
        deep = len(path.relative_to(folder).parts) == _DEPTH
        if deep and is_name(path.name) and path.parent not in needed:
            yield path


def _tree(found: Found, *, dry_run: bool) -> dict[str, object]:
    names = [str(path.relative_to(found.experiment_dir)) for path in found.files]
    return {
        "experiment_dir": str(found.experiment_dir), "removed": [] if dry_run else names,
        "removable": names if dry_run else [], "bytes": found.size_bytes,
    }
