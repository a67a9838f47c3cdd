"""What the files of an experiment directory are called: those of its runs, their checkpoints, its answer."""

from __future__ import annotations

import re
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files import remove_below
from esper_ab.contracts.records import Checkpoint, RunRef

# --- run files -------------------------------------------------------------------------------------------------------
# Where an experiment directory keeps what belongs to one run, as paths relative to it.


RUNS, LOGS, POLICIES, CHECKPOINTS = "runs", "logs", "policies", "checkpoints"  # folders of an experiment directory
_NO_SIGNS = str.maketrans("=+", "__")
FILE_LIMIT_BYTES = 4 << 30  # of a policy or checkpoint that is read


def folder_of(run: RunRef) -> str:
    """Return the folder of a run's settings and of what its trainer writes."""
    return f"{RUNS}/{_plain(run)}"


def config_of(run: RunRef) -> str:
    """Return the file of the settings that repeat a run."""
    return f"{folder_of(run)}/config.toml"


def out_of(run: RunRef) -> str:
    """Return the folder into which a run's trainer may write."""
    return f"{folder_of(run)}/out"


def log_of(run: RunRef) -> str:
    """Return the file of what a run prints."""
    return f"{LOGS}/{_plain(run)}.log"


def policy_of(run: RunRef) -> str:
    """Return the file of a run's trained policy."""
    return f"{POLICIES}/{run.name}.pt"


def _plain(run: RunRef) -> str:
    """Return the name of a run without a folder in it."""
    return f"{plain_group(run.group_id)}-{run.replicate}"


def plain_group(name: str) -> str:
    """Return a group's name as a folder that a script may be given as key=value: without "=" and "+"."""
    return name.translate(_NO_SIGNS)


# --- checkpoint files ------------------------------------------------------------------------------------------------
# What a run's checkpoints are called: checkpoints/<group>/<replicate>/<milestone>.pt.
#
# On other machines a worker that was started in the place of another has <milestone>.<writer>.pt: one that is given up
# for lost and is not, on a node that cannot be reached for a while, overwrites nothing of its successor's.


GENERATIONS = 2  # number kept: the newest, and the one before in case the newest gets damaged
_NAME = re.compile(r"(\d+)(\.\d+)?\.pt")


def file_of(run: RunRef, milestone: int, writer: int = 1) -> str:
    """Return the path of a worker's checkpoint of `milestone`, relative to the experiment directory."""
    again = f".{writer}" if writer > 1 else ""
    return f"{_folder(run)}/{milestone}{again}.pt"


def is_file_of(run: RunRef, checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint lies where some worker of `run` keeps its milestone."""
    named = _NAME.fullmatch(Path(checkpoint.file).name)
    return named is not None and checkpoint.file == f"{_folder(run)}/{checkpoint.milestone}{named[2] or ''}.pt"


def is_name(name: str) -> bool:
    """Whether a checkpoint may be called `name` in the folder of its run."""
    return _NAME.fullmatch(name) is not None


def remove_older(root: Path, file: str) -> None:
    """Remove the generations below `root` that `file`, which is a checkpoint and has just been written, makes too old.

    OSError.
    """
    folder, written = Path(file).parent, _NAME.fullmatch(Path(file).name)
    assert written is not None, "it is called as a checkpoint"
    for old in (root / folder).glob("*.pt"):
        named = _NAME.fullmatch(old.name)
        if named is not None and int(named[1]) <= int(written[1]) - GENERATIONS:
            remove_below(root, folder / old.name)


def _folder(run: RunRef) -> str:
    return f"{CHECKPOINTS}/{run.name}"


# --- answer files ----------------------------------------------------------------------------------------------------
# What the files of an answer are called, in an experiment directory and in that of a joint experiment.


SUMMARY, VERDICT, PAGE = "summary.txt", "verdict.json", "report.html"  # for terminals, programs and people


# --- name ------------------------------------------------------------------------------------------------------------


_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def check_name(name: str, origin: str = "--name") -> None:
    """UsageError, which begins with `origin`, unless `name` can be a folder's name everywhere."""
    if not _FOLDER_NAME.fullmatch(name):
        raise UsageError(f"{origin} {name!r}: a folder's name: a letter or digit, then letters, digits, '_', '.', '-'")
