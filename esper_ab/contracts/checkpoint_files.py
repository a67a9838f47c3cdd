"""What a run's checkpoints are called: checkpoints/<group>/<replicate>/<milestone>.pt.

On other machines a worker that was started in the place of another has <milestone>.<writer>.pt: one that is given up
for lost and is not, on a node that cannot be reached for a while, overwrites nothing of its successor's.
"""

from __future__ import annotations

import re
from pathlib import Path

from esper_ab.contracts.below import remove_below
from esper_ab.contracts.records import Checkpoint, RunRef
from esper_ab.contracts.run_files import CHECKPOINTS

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
