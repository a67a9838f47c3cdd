"""Names of the files in an experiment directory: the files of its runs, their checkpoints, and the reports."""

from __future__ import annotations

import re
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files import remove_below
from esper_ab.contracts.records import Checkpoint, RunRef

# --- run files -------------------------------------------------------------------------------------------------------
# Files that belong to one run, as paths relative to the experiment directory.


RUNS, LOGS, POLICIES, CHECKPOINTS = "runs", "logs", "policies", "checkpoints"  # folders of an experiment directory
_NO_SIGNS = str.maketrans("=+", "__")
FILE_LIMIT_BYTES = 4 << 30  # largest policy or checkpoint that is read


def folder_of(run: RunRef) -> str:
    """Return the folder for a run's settings and for the output of its trainer."""
    return f"{RUNS}/{_plain(run)}"


def config_of(run: RunRef) -> str:
    """Return the settings file from which a run can be repeated."""
    return f"{folder_of(run)}/config.toml"


def out_of(run: RunRef) -> str:
    """Return the folder into which a run's trainer may write."""
    return f"{folder_of(run)}/out"


def log_of(run: RunRef) -> str:
    """Return the log file of a run, for everything that it prints."""
    return f"{LOGS}/{_plain(run)}.log"


def policy_of(run: RunRef) -> str:
    """Return the file for the trained policy of a run."""
    return f"{POLICIES}/{run.name}.pt"


def _plain(run: RunRef) -> str:
    """Return a run's name written without a slash."""
    return f"{plain_group(run.group_id)}-{run.replicate}"


def plain_group(name: str) -> str:
    """Return a folder name for a group, without "=" and "+", so that it is safe in a script's key=value argument."""
    return name.translate(_NO_SIGNS)


# --- checkpoint files ------------------------------------------------------------------------------------------------
# Names of a run's checkpoints: checkpoints/<group>/<replicate>/<milestone>.pt.
#
# On other machines, a worker that replaces another one writes <milestone>.<writer>.pt. So an old worker that still runs
# after it was given up, because its node was unreachable for a while, cannot overwrite its successor's files.


GENERATIONS = 2  # number kept: the newest, and the previous one in case the newest gets damaged
_NAME = re.compile(r"(\d+)(\.\d+)?\.pt")


def file_of(run: RunRef, milestone: int, writer: int = 1) -> str:
    """Return the path of a worker's checkpoint for `milestone`, relative to the experiment directory."""
    again = f".{writer}" if writer > 1 else ""
    return f"{_folder(run)}/{milestone}{again}.pt"


def is_file_of(run: RunRef, checkpoint: Checkpoint) -> bool:
    """Whether the path of a checkpoint is one that a worker of `run` would use for the checkpoint's milestone."""
    named = _NAME.fullmatch(Path(checkpoint.file).name)
    return named is not None and checkpoint.file == f"{_folder(run)}/{checkpoint.milestone}{named[2] or ''}.pt"


def is_name(name: str) -> bool:
    """Whether `name` is valid for a checkpoint file."""
    return _NAME.fullmatch(name) is not None


def remove_older(root: Path, file: str) -> None:
    """Remove checkpoints of the run that are too old to keep once `file` is written; raises OSError.

    `file` is relative to `root`. The newest GENERATIONS milestones are kept.
    """
    folder, written = Path(file).parent, _NAME.fullmatch(Path(file).name)
    assert written is not None, "it has the name of a checkpoint"
    for old in (root / folder).glob("*.pt"):
        named = _NAME.fullmatch(old.name)
        if named is not None and int(named[1]) <= int(written[1]) - GENERATIONS:
            remove_below(root, folder / old.name)


def _folder(run: RunRef) -> str:
    return f"{CHECKPOINTS}/{run.name}"


# --- answer files ----------------------------------------------------------------------------------------------------
# Names of the files of an answer, in the directory of an experiment or of a joint experiment.


SUMMARY, VERDICT, PAGE = "summary.txt", "verdict.json", "report.html"  # for terminals, programs and people


# --- name ------------------------------------------------------------------------------------------------------------


_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def check_name(name: str, origin: str = "--name") -> None:
    """Raise UsageError if `name` is not a portable folder name; the message starts with `origin`."""
    if not _FOLDER_NAME.fullmatch(name):
        raise UsageError(f"{origin} {name!r}: must start with a letter or digit and contain only these and _.-")
