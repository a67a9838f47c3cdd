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
from esper_ab.commands._parameters import PATH, json_flag, switch, valued
from esper_ab.commands._removable import Removable, removable, remove
from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.contracts.wording import counted
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME, Lock, holder
from esper_ab.journal.reading import check_exists, read
from esper_ab.journal.torn_tail import cut_off
from esper_ab.settings.references import read_size


@command_with(
    "esper-ab tidy experiments/*",
    "esper-ab tidy --check experiments/EXPERIMENT",
    "esper-ab tidy --repair experiments/EXPERIMENT",
    "esper-ab tidy --references ~/kept-runs --references-limit 500MB",
)
@click.argument("experiment_dirs", metavar="[EXPERIMENT…]", nargs=-1, type=ExperimentDirectory())
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
@valued(
    "--references",
    "DIR",
    "Also tidy this folder of kept runs: remove damaged files. With --check, only list what is in it.",
    type=PATH,
)
@valued("--references-limit", "SIZE", "Remove the runs used longest ago until that folder has at most this size.")
@json_flag
def command(
    experiment_dirs: tuple[Path, ...],
    check: bool,
    repairs: bool,
    references: Path | None,
    references_limit: str | None,
    json: bool,
) -> int:
    """Remove checkpoints, temporary files and console output of EXPERIMENT…, or check it for damage.

    The files of states of the code (--code) that a killed experiment has left are removed, too. The journal, policies,
    experiment.toml, reports, logs and files of other tools are kept. An unfinished experiment also keeps its console
    output and the files that `resume` needs. If one of the experiments is running, nothing is removed from any of them.
    A folder of kept runs may be in use.
    """
    if check and repairs:
        raise click.UsageError("--check and --repair exclude each other, because --check changes nothing")
    if not experiment_dirs and references is None:
        raise click.UsageError("name an experiment or, with --references, a folder of kept runs")
    if check:
        return _check(experiment_dirs, references, json=json)
    limit_bytes = _limit(references, references_limit)
    removed = _tidied(experiment_dirs, repairs=repairs)
    contents = None
    if references is not None:
        from esper_ab.kept_runs.tidying import tidy_folder  # only for folders of kept runs

        contents = tidy_folder(references, limit_bytes)
    if json:
        trees = [
            {
                "experiment_dir": str(experiment_dir),
                "cut": cut_words.removesuffix("; "),
                "removed": [str(file) for file in unneeded_files.files],
                "bytes": unneeded_files.size_bytes,
            }
            for experiment_dir, (cut_words, unneeded_files) in removed.items()
        ]
        trees += [] if contents is None else [msgspec.to_builtins(contents)]
        click.echo(json_module.dumps(trees, indent=2))
        return 0
    for experiment_dir, (cut_words, unneeded_files) in removed.items():
        files = f"{counted(len(unneeded_files.files), 'file')}, {unneeded_files.size_bytes / 1e6:.1f} MB removed"
        click.echo(typeable(f"{experiment_dir}: {cut_words}{files}{unneeded_files.kept}"))
    if contents is not None:
        click.echo(typeable(str(contents)))
    return 0


def _check(experiment_dirs: tuple[Path, ...], references: Path | None, *, json: bool) -> int:
    """Print what is damaged, and return the exit status."""
    findings = [examine(experiment_dir) for experiment_dir in experiment_dirs]
    statuses = [damage.exit_status for damage in findings]
    trees = [msgspec.to_builtins(damage) | {"exit_status": damage.exit_status} for damage in findings]
    texts = [describe(damage) for damage in findings]
    if references is not None:
        from esper_ab.kept_runs.tidying import check_folder  # only for folders of kept runs

        contents = check_folder(references)
        statuses.append(JournalError.exit_code if contents.damaged else 0)
        trees.append(msgspec.to_builtins(contents) | {"exit_status": statuses[-1]})
        texts.append("\n".join((str(contents), *(f"damaged: {file}" for file in contents.damaged))))
    if json:
        click.echo(json_module.dumps(trees))  # not msgspec's, because a path may have bytes that are not UTF-8
    else:
        click.echo(typeable("\n\n".join(texts)))
    return max(statuses)


def _limit(references: Path | None, references_limit: str | None) -> int | None:
    """Return the bytes of --references-limit; None if it is not given."""
    if references_limit is None:
        return None
    if references is None:
        raise click.UsageError("--references-limit needs --references, the folder of kept runs")
    return read_size(references_limit, "--references-limit")


def _tidied(experiment_dirs: tuple[Path, ...], *, repairs: bool) -> dict[Path, tuple[str, Removable]]:
    """Tidy experiment directories; return, for each, what was cut off its journal, in words, and what was removed."""
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
    return {experiment_dir: (cut_words[experiment_dir], removables[experiment_dir]) for experiment_dir in removables}


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
