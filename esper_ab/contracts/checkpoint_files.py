"""Names of a run's checkpoints: checkpoints/<group>/<replicate>/<milestone>.pt.

On other machines, a worker that replaces another one writes <milestone>.<writer>.pt. So an old worker that still runs
after it was given up, because its node was unreachable for a while, cannot overwrite its successor's files.
"""

from __future__ import annotations

import re
from pathlib import Path

from esper_ab.contracts.files_below import remove_below
from esper_ab.contracts.records import Checkpoint, RunRef
from esper_ab.contracts.run_files import CHECKPOINTS

GENERATIONS = 2  # number kept: the newest, and the previous one in case the newest gets damaged
_NAME = re.compile(r"(\d+)(\.\d+)?\.pt")


def file_of(run: RunRef, milestone: int, writer: int = 1) -> str:
    """Return the path of a worker's checkpoint for `milestone`, relative to the experiment directory."""
    suffix = f".{writer}" if writer > 1 else ""
    return f"{_folder(run)}/{milestone}{suffix}.pt"


def is_file_of(run: RunRef, checkpoint: Checkpoint) -> bool:
    """Whether the path of a checkpoint is one that a worker of `run` would use for the checkpoint's milestone."""
    name_match = _NAME.fullmatch(Path(checkpoint.file).name)
    return (
        name_match is not None and checkpoint.file == f"{_folder(run)}/{checkpoint.milestone}{name_match[2] or ''}.pt"
    )


def is_name(name: str) -> bool:
    """Whether `name` is valid for a checkpoint file."""
    return _NAME.fullmatch(name) is not None


def remove_older(root: Path, file: str) -> None:
    """Remove checkpoints of the run that are too old to keep once `file` is written; raises OSError.

    `file` is relative to `root`. The newest GENERATIONS milestones are kept.
    """
    folder = Path(file).parent
    written_match = _NAME.fullmatch(Path(file).name)
    assert written_match is not None, "it has the name of a checkpoint"
    for old_file in (root / folder).glob("*.pt"):
        old_match = _NAME.fullmatch(old_file.name)
        if old_match is not None and int(old_match[1]) <= int(written_match[1]) - GENERATIONS:
            remove_below(root, folder / old_file.name)


def _folder(run: RunRef) -> str:
    return f"{CHECKPOINTS}/{run.name}"
