"""Generations of a run's checkpoints, as bytes: checkpoints/<group>/<replicate>/<milestone>.pt.

On other machines a worker that was started in the place of another writes <milestone>.<writer>.pt: one that is given
up for lost and is not, on a node that cannot be reached for a while, overwrites nothing of its successor's.

A checkpoint is written before the record of its milestone is sent, so a recorded episode never has to be run again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from esper_ab.contracts.below import remove_below
from esper_ab.contracts.records import Checkpoint, RunRef
from workers.storage import durable
from workers.storage.durable import Damaged

_NAME = re.compile(r"(\d+)(\.\d+)?\.pt")
GENERATIONS = 2  # number kept: the newest, and the one before in case the newest gets damaged


def file_of(run: RunRef, milestone: int, writer: int = 1) -> str:
    """Return the path of a worker's checkpoint of `milestone`, relative to the experiment directory."""
    again = f".{writer}" if writer > 1 else ""
    return f"{_folder(run)}/{milestone}{again}.pt"


def _folder(run: RunRef) -> str:
    return f"checkpoints/{run.name}"


def store(experiment_dir: Path, run: RunRef, milestone: int, data: bytes, writer: int = 1) -> Checkpoint:
    """Write a generation, then remove those that are too old. OSError leaves all previous ones unchanged.

    `writer`: that of the worker's order.
    """
    file = file_of(run, milestone, writer)
    sha256 = durable.write(experiment_dir, file, data)
    for old in (experiment_dir / file).parent.glob("*.pt"):
        named = _NAME.fullmatch(old.name)
        if named is not None and int(named[1]) <= milestone - GENERATIONS:
            remove_below(experiment_dir, f"{_folder(run)}/{old.name}")
    return Checkpoint(milestone=milestone, file=file, sha256=sha256, size_bytes=len(data))


def take_up(
    experiment_dir: Path, run: RunRef, offered: tuple[Checkpoint, ...], resume: Callable[[bytes], None]
) -> tuple[int, tuple[str, ...]]:
    """Pass the first intact checkpoint of `offered` (newest first) to `resume`, which may raise Damaged, too.

    Returns the milestone of the restored run, 0 when no checkpoint was intact, and one sentence per damaged one.
    """
    damaged: list[str] = []
    for checkpoint in offered:
        file, named = file_of(run, checkpoint.milestone), _NAME.fullmatch(Path(checkpoint.file).name)
        try:
            if named is not None and checkpoint.file == f"{_folder(run)}/{checkpoint.milestone}{named[2] or ''}.pt":
                file = checkpoint.file
            else:
                where = f"is where run {run.name} keeps milestone {checkpoint.milestone}"
                raise Damaged(f"{where}, not {checkpoint.file[:200]!r}")
            resume(durable.read(experiment_dir / file, checkpoint.sha256, checkpoint.size_bytes))
        except Damaged as error:
            damaged.append(f"{file} {error}")
        else:
            return checkpoint.milestone, tuple(damaged)
    return 0, tuple(damaged)
