"""`esper-ab tidy`: remove files that experiment directories no longer need, or check directories for damage."""

from __future__ import annotations

import json as json_module
from contextlib import closing
from pathlib import Path

import click
import msgspec

from esper_ab.commands._check import examine, fold_intact
from esper_ab.commands._check_text import describe
from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands._parameters import json_flag, switch
from esper_ab.commands._removable import removable, remove
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.contracts.wording import counted
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME, Lock, holder
from esper_ab.journal.reading import check_exists, read
from esper_ab.journal.torn_tail import cut_off


@command_with(
    "esper-ab tidy experiments/*",
    "esper-ab tidy --check experiments/EXPERIMENT",
    "esper-ab tidy --repair experiments/EXPERIMENT",
)
@click.argument("experiment_dirs", metavar="EXPERIMENT…", nargs=-1, required=True, type=ExperimentDirectory())
@switch(
    "--check",
    "Change nothing: verify journal, policies, checkpoints, settings and copies of code, and list the files that would "
    "be removed. The exit status is 5 if something is damaged.",
)
@switch(
    "--repair",
    "First cut a damaged journal at its first damaged line; the removed part is kept in a file next to it.",
    "repairs",
)
@json_flag
def command(experiment_dirs: tuple[Path, ...], check: bool, repairs: bool, json: bool) -> int:
    """Remove checkpoints, temporary files and console output of EXPERIMENT…, or check it for damage.

    The files of states of the code (--code) that a killed experiment has left are removed, too. The journal, policies,
    experiment.toml, reports, logs and files of other tools are kept. An unfinished experiment also keeps its console
    output and the files that `resume` needs. If one of the experiments is running, nothing is removed from any of them.
    """
    if check and repairs:
        raise click.UsageError("--check and --repair exclude each other, because --check changes nothing")
    if check:
        findings = [examine(experiment_dir) for experiment_dir in experiment_dirs]
        statuses = [damage.exit_status for damage in findings]
        if json:
            finding_trees = [msgspec.to_builtins(damage) | {"exit_status": damage.exit_status} for damage in findings]
            click.echo(
                json_module.dumps(finding_trees)
            )  # not msgspec's, because a path may have bytes that are not UTF-8
        else:
            click.echo(typeable("\n\n".join(map(describe, findings))))
        return max(statuses)
    for experiment_dir in experiment_dirs:
        if lock_holder := holder(experiment_dir):
            stop = shell_command("stop", experiment_dir)
            raise UsageError(f"{experiment_dir} is in use by {lock_holder}; `{stop}` ends it; nothing was removed")
    cut_words = dict.fromkeys(experiment_dirs, "")
    if repairs:
        cut_words = {experiment_dir: repair(experiment_dir) for experiment_dir in experiment_dirs}
    removables = {
        experiment_dir: removable(experiment_dir, load(experiment_dir).history) for experiment_dir in cut_words
    }
    for experiment_dir, unneeded_files in removables.items():
        remove(experiment_dir, unneeded_files)
        if not json:
            files = f"{counted(len(unneeded_files.files), 'file')}, {unneeded_files.size_bytes / 1e6:.1f} MB removed"
            click.echo(typeable(f"{experiment_dir}: {cut_words[experiment_dir]}{files}{unneeded_files.kept}"))
    if json:
        trees = [
            {
                "experiment_dir": str(experiment_dir),
                "cut": cut_words[experiment_dir].removesuffix("; "),
                "removed": [str(file) for file in unneeded_files.files],
                "bytes": unneeded_files.size_bytes,
            }
            for experiment_dir, unneeded_files in removables.items()
        ]
        click.echo(json_module.dumps(trees, indent=2))
    return 0


def repair(experiment_dir: Path) -> str:
    """Cut the journal at its first damage or after its last whole line, save the removed part, and describe the cut.

    Returns "" if there was nothing to cut, or if cutting would not repair the journal. Raises UsageError if a process
    holds the experiment directory. If the disk has no room for the removed part, raises OSError and changes nothing.
    """
    path = experiment_dir / JOURNAL_NAME
    check_exists(path)  # before a lock is created in a folder that is not ours
    with closing(Lock(experiment_dir)):
        journal_reading = read(path)
        history, _, is_repairable = fold_intact(journal_reading)
        if history is None or not (is_repairable or journal_reading.torn_bytes):
            return ""
        size = path.stat().st_size - journal_reading.intact_bytes
        kept_file = cut_off(experiment_dir, journal_reading.intact_bytes, journal_reading.lines)
    return f"cut {size} bytes off the journal after line {journal_reading.lines}; they are in {kept_file.name}; "
