"""`esper-ab gc`: give back what a run directory needs no more. Its journal and its policies stay, whatever happens."""

from __future__ import annotations

import json as json_module
import os
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import click

from esper_ab.commands._completing import RunDirectory
from esper_ab.commands._exit_status import epilog
from esper_ab.commands._leftovers import CHECKPOINTS, files_below, leftovers
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_line import typed
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import Lock, holder
from esper_ab.live.console import CONSOLE_NAME
from esper_ab.live.status import state_of

_CHECKPOINT = re.compile(r"\d+\.pt")
_DEPTH = 3  # of a checkpoint below the folder: GROUP/REPLICATE/POINT.pt


@dataclass(frozen=True, kw_only=True)
class Found:
    """Files of one run directory that can be removed."""

    run_dir: Path
    files: tuple[Path, ...]
    size_bytes: int
    kept: str  # what stays that would go if the run were finished; "" when nothing does


@click.command(epilog=epilog("esper-ab gc runs/RUN --dry-run", "esper-ab gc runs/*"))
@click.argument("run_dirs", metavar="RUN…", nargs=-1, required=True, type=RunDirectory())
@click.option("--dry-run", is_flag=True, help="Say what would go and remove nothing.")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
def command(run_dirs: tuple[Path, ...], dry_run: bool, json: bool) -> None:
    """Remove checkpoints, temporary files and console output of RUN….

    Journal, policies, experiment.toml, reports, logs and files that are not of this tool stay. Of a run that is not
    finished, what `resume` needs and the console's output stay, too. A run in progress is refused, and then nothing of
    the others is removed either.
    """
    found = [removable(run_dir) for run_dir in run_dirs]
    for one in found:
        if not dry_run:
            remove(one)
    if json:
        click.echo(json_module.dumps([_tree(one, dry_run=dry_run) for one in found], indent=2))
        return
    for one in found:
        word = "would be removed" if dry_run else "removed"
        click.echo(f"{one.run_dir}: {len(one.files)} files, {one.size_bytes / 1e6:.1f} MB {word}{one.kept}")
        for path in one.files if dry_run else ():
            click.echo(f"  {path.relative_to(one.run_dir)}")


def removable(run_dir: Path) -> Found:
    """Find what can be removed of `run_dir`.

    UsageError when a process carries the run out, when it is no run directory, or keeps its checkpoints elsewhere.
    """
    if by := holder(run_dir):
        raise UsageError(f"{run_dir} is in use by {by}; `{typed('stop', run_dir)}` ends it; nothing was removed")
    folder = run_dir / CHECKPOINTS
    if folder.is_symlink():
        raise UsageError(
            f"{folder} is a symbolic link, and gc removes nothing outside a run directory; nothing was removed: clear "
            f"{folder.readlink()} yourself, or remove the link"
        )
    history = load(run_dir).history
    state = state_of(history, held=False)
    files = [*leftovers(run_dir), *_checkpoints(folder, history)]
    if state == "finished":
        files += [path for path in [run_dir / CONSOLE_NAME] if path.is_file()]
    kept = "" if state == "finished" else f"; it is {state}, so what `{typed('resume', run_dir)}` needs was kept"
    size = sum(path.lstat().st_size for path in files)
    return Found(run_dir=run_dir, files=tuple(sorted(files)), size_bytes=size, kept=kept)


def remove(found: Found) -> None:
    """Remove what was found; UsageError when a process has begun to carry the run out in between."""
    with closing(Lock(found.run_dir)):
        for path in found.files:
            path.unlink(missing_ok=True)
        for folder, _, _ in os.walk(found.run_dir / CHECKPOINTS, topdown=False):
            with suppress(OSError):  # not empty
                Path(folder).rmdir()


def _checkpoints(folder: Path, history: History) -> Iterator[Path]:
    """Checkpoints of runs that are complete; a run that is still to be finished starts again from its own."""
    needed = {folder / name for name, run in history.runs.items() if run.started and run.expected}
    for path in files_below(folder):
        deep = len(path.relative_to(folder).parts) == _DEPTH
        if deep and _CHECKPOINT.fullmatch(path.name) and path.parent not in needed:
            yield path


def _tree(found: Found, *, dry_run: bool) -> dict[str, object]:
    return {
        "run_dir": str(found.run_dir),
        "removed": [] if dry_run else [str(path.relative_to(found.run_dir)) for path in found.files],
        "removable": [str(path.relative_to(found.run_dir)) for path in found.files] if dry_run else [],
        "bytes": found.size_bytes,
    }
