"""`esper-ab tidy`: remove what experiment directories need no more, or check that what they keep is intact."""

from __future__ import annotations

import json as json_module
from contextlib import closing
from pathlib import Path

import click
import msgspec

from esper_ab.commands._check import describe, examine, fold_intact
from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands._parameters import json_flag, switch
from esper_ab.commands._removable import removable, remove
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import counted, shell_command
from esper_ab.journal.file import JOURNAL_NAME, check_there, cut_off, read
from esper_ab.journal.load import load
from esper_ab.journal.lock import Lock, holder


@command_with(
    "esper-ab tidy experiments/*", "esper-ab tidy --check experiments/EXPERIMENT",
    "esper-ab tidy --repair experiments/EXPERIMENT",
)  # fmt: skip
@click.argument("experiment_dirs", metavar="EXPERIMENT…", nargs=-1, required=True, type=ExperimentDirectory())
@switch("--check",
    "Change nothing: verify journal, policies, checkpoints, settings and copies of code, and name what would be "
    "removed. Exit status 5 when something is damaged.")
@switch("--repair",
    "First cut a damaged journal at its first damaged line; what is cut off is kept beside it.", "repairs")
@json_flag
def command(experiment_dirs: tuple[Path, ...], check: bool, repairs: bool, json: bool) -> int:
    """Remove checkpoints, temporary files and console output of EXPERIMENT…, or check what they keep.

    Keeps journal, policies, experiment.toml, reports, logs and files of other tools; while an experiment is
    unfinished, also what `resume` needs and the console's output. Refuses an experiment in progress, and then removes
    nothing of the others either.
    """
    if check and repairs:
        raise click.UsageError("--check changes nothing; leave it or --repair out")
    if check:
        findings = [examine(experiment_dir) for experiment_dir in experiment_dirs]
        checked = [msgspec.to_builtins(one) | {"exit_status": one.exit_status} for one in findings]
        # Not msgspec's JSON: a path may have bytes that are no UTF-8.
        click.echo(json_module.dumps(checked) if json else "\n\n".join(map(describe, findings)))
        return max(one.exit_status for one in findings)
    for experiment_dir in experiment_dirs:
        if by := holder(experiment_dir):
            stop = shell_command("stop", experiment_dir)
            raise UsageError(f"{experiment_dir} is in use by {by}; `{stop}` ends it; nothing was removed")
    cut = {experiment_dir: repair(experiment_dir) if repairs else "" for experiment_dir in experiment_dirs}
    found = {experiment_dir: removable(experiment_dir, load(experiment_dir).history) for experiment_dir in cut}
    for experiment_dir, one in found.items():
        remove(experiment_dir, one)
        if not json:
            size = f"{one.size_bytes / 1e6:.1f} MB removed"
            click.echo(f"{experiment_dir}: {cut[experiment_dir]}{counted(len(one.files), 'file')}, {size}{one.kept}")
    if json:
        trees = [
            {"experiment_dir": str(experiment_dir), "cut": cut[experiment_dir].removesuffix("; "),
             "removed": [str(file) for file in one.files], "bytes": one.size_bytes}
            for experiment_dir, one in found.items()
        ]  # fmt: skip
        click.echo(json_module.dumps(trees, indent=2))
    return 0


def repair(experiment_dir: Path) -> str:
    """Cut the journal at its first damage or behind its last whole line, and keep what is cut off; say what was done.

    "" where nothing was to be done or a cut does not help. UsageError when somebody has the experiment directory;
    OSError, with nothing changed, without room for what is cut off.
    """
    path = experiment_dir / JOURNAL_NAME
    check_there(path)  # before a lock is made in a folder that is none of ours
    with closing(Lock(experiment_dir)):
        reading = read(path)
        history, _, repairable = fold_intact(reading)
        if history is None or not (repairable or reading.torn_bytes):
            return ""
        size = path.stat().st_size - reading.intact_bytes
        kept = cut_off(experiment_dir, reading.intact_bytes, reading.lines)
    return f"cut {size} bytes off the journal behind line {reading.lines}; they are in {kept.name}; "
