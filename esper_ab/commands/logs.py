"""`esper-ab logs`: print the logs of an experiment's processes, while it runs or afterwards."""

from __future__ import annotations

import json as json_module
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import experiment_argument
from esper_ab.commands._parameters import switch
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import open_below
from esper_ab.contracts.run_files import LOGS
from esper_ab.contracts.visible import visible
from esper_ab.journal.fold import History
from esper_ab.live.console import CONSOLE_NAME
from esper_ab.live.viewer import Viewer

_POLL_S = 0.25
_CONSOLE = "console"
_END_BYTES = 64 << 20  # shown of a log, at most
_LINE_CHARS = 1 << 16  # shown of a line, at most
_SHOWN = 8  # names shown in an error


@command_with("esper-ab logs experiments/EXPERIMENT", "esper-ab logs experiments/EXPERIMENT shaped/0 --follow")
@experiment_argument
@click.argument("name", metavar="[GROUP/REPLICATE]", default="")
@switch("--follow", "Keep printing new lines until the experiment ends.", "-f")
@switch("--json", "Print a JSON object per line.")
def command(experiment_dir: Path, name: str, follow: bool, json: bool) -> None:
    """Print the logs of EXPERIMENT: those of one run, of one worker or of the console, or all of them.

    Name a run as GROUP/SEED, a worker as in w00, and the console as `console`; without a name all logs are printed.
    """
    viewer = Viewer(experiment_dir)
    known_names = sources(experiment_dir, viewer.history)
    if name and name not in known_names:
        raise UsageError(f"{experiment_dir} has no log {name!r}; {_hint(name, list(known_names))}")
    run = viewer.history.runs.get(name)
    if run is not None and run.reused is not None:
        click.echo(f"{name} was trained in the experiment {run.reused.source}, which has its log", err=True)
    width = max(map(len, known_names))
    with suppress(KeyboardInterrupt):
        for origin, line in lines(experiment_dir, viewer, name, follow=follow):
            if json:
                click.echo(json_module.dumps({"log": origin, "line": line}))
            elif name:
                click.echo(visible(line))
            else:
                click.echo(f"{origin:<{width}} | {visible(line)}")


def _hint(name: str, known_names: list[str]) -> str:
    """Return what to write instead of an unknown name."""
    close = get_close_matches(name, known_names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    names = ", ".join(known_names[:_SHOWN])
    if len(known_names) > _SHOWN:
        names += ", …"
    return f"it has {names}"


def sources(experiment_dir: Path, history: History) -> dict[str, Path]:
    """Return the path of each log by name (runs in plan order, workers, console), also of files that do not exist."""
    files = {name: experiment_dir / run.spec.log_file for name, run in history.runs.items()}
    known_files = set(files.values())
    files |= {path.stem: path for path in sorted((experiment_dir / LOGS).glob("*.log")) if path not in known_files}
    return files | {_CONSOLE: experiment_dir / CONSOLE_NAME}


def lines(experiment_dir: Path, viewer: Viewer, name: str = "", *, follow: bool = False) -> Iterator[tuple[str, str]]:
    """Yield pairs (log name, line), ordered within each log.

    With `follow`, keep yielding new lines until no process holds the experiment directory.
    """
    read_bytes = Counter[str]()  # bytes read so far, or skipped, by log
    while True:
        viewer.catch_up()
        last = not (follow and viewer.held)
        paths = sources(experiment_dir, viewer.history)  # again, because runs and workers may have been added
        if name:
            paths = {name: paths[name]}
        for origin, path in paths.items():
            data, read_bytes[origin] = _read_new_lines(experiment_dir, path, read_bytes[origin], last=last)
            for line in data.decode(errors="replace").splitlines():
                yield origin, _shortened(line)
        if last:
            return
        time.sleep(_POLL_S)


def _read_new_lines(experiment_dir: Path, path: Path, offset: int, *, last: bool) -> tuple[bytes, int]:
    """Return the new complete lines of a growing file, and the offset where they end.

    With `last`, include a final unfinished line. More than _END_BYTES are not read: the lines before them are skipped,
    and stderr says so. Raises NotRegular if the file is a link, or anything else but a file.
    """
    try:
        descriptor = open_below(experiment_dir, path.relative_to(experiment_dir), os.O_RDONLY)
    except FileNotFoundError:
        return b"", offset
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        start = max(offset, size - _END_BYTES)
        file.seek(start)
        data = file.read(size - start)
    if not last:
        data = data[: data.rfind(b"\n") + 1]
    if not data:
        return b"", offset
    if start > offset:
        click.echo(f"{path}: only the last {_END_BYTES >> 20} of {size >> 20} MiB are shown", err=True)
    return data, start + len(data)


def _shortened(line: str) -> str:
    """Return the part of a line that is shown."""
    if len(line) <= _LINE_CHARS:
        return line
    return f"{line[:_LINE_CHARS]}…"
