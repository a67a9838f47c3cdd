"""Generations of a run's checkpoints, as bytes: checkpoints/<group>/<replicate>/<milestone>.pt.

A checkpoint is written before the record of its milestone is sent, so a recorded episode never has to be run again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from esper_ab.contracts.below import remove_below
from esper_ab.contracts.records import Checkpoint, RunRef
from workers.storage import durable
from workers.storage.durable import Damaged

GENERATIONS = 2  # number kept: the newest, and the one before in case the newest gets damaged


def file_of(run: RunRef, milestone: int) -> str:
    """Return the path of the checkpoint of `milestone`, relative to the experiment directory."""
    return f"checkpoints/{run.name}/{milestone}.pt"


def store(experiment_dir: Path, run: RunRef, milestone: int, data: bytes) -> Checkpoint:
    """Write a generation, then remove those that are too old. OSError leaves all previous ones unchanged."""
    file = file_of(run, milestone)
    sha256 = durable.write(experiment_dir, file, data)
    for old in (experiment_dir / file).parent.glob("*.pt"):
        if old.stem.isdecimal() and int(old.stem) <= milestone - GENERATIONS:
            remove_below(experiment_dir, file_of(run, int(old.stem)))
    return Checkpoint(milestone=milestone, file=file, sha256=sha256, size_bytes=len(data))


def take_up(
    experiment_dir: Path, run: RunRef, offered: tuple[Checkpoint, ...], resume: Callable[[bytes], None]
) -> tuple[int, tuple[str, ...]]:
    """Pass the first intact checkpoint of `offered` (newest first) to `resume`, which may raise Damaged, too.

    Returns the milestone of the restored run, 0 when no checkpoint was intact, and one sentence per damaged one.
    """
    damaged: list[str] = []
    for checkpoint in offered:
        file = file_of(run, checkpoint.milestone)
        try:
            if checkpoint.file != file:
                where = f"is where run {run.name} keeps milestone {checkpoint.milestone}"
                raise Damaged(f"{where}, not {checkpoint.file[:200]!r}")
            resume(durable.read(experiment_dir / file, checkpoint.sha256, checkpoint.size_bytes))
        except Damaged as error:
            damaged.append(f"{file} {error}")
        else:
            return checkpoint.milestone, tuple(damaged)
    return 0, tuple(damaged)
