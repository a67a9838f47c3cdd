"""Generations of a run's checkpoints, as bytes: where they are kept is contracts/checkpoint_files.py.

A checkpoint is written before the record of its milestone is sent, so a recorded episode never has to be run again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from esper_ab.contracts.checkpoint_files import file_of, is_file_of, remove_older
from esper_ab.contracts.records import Checkpoint, RunRef
from workers.storage import durable
from workers.storage.durable import Damaged


def store(experiment_dir: Path, run: RunRef, milestone: int, data: bytes, writer: int = 1) -> Checkpoint:
    """Write a generation, then remove those that are too old. OSError leaves all previous ones unchanged.

    `writer`: that of the worker's order.
    """
    file = file_of(run, milestone, writer)
    sha256 = durable.write(experiment_dir, file, data)
    remove_older(experiment_dir, file)
    return Checkpoint(milestone=milestone, file=file, sha256=sha256, size_bytes=len(data))


def take_up(
    experiment_dir: Path, run: RunRef, offered: tuple[Checkpoint, ...], resume: Callable[[bytes], None]
) -> tuple[int, tuple[str, ...]]:
    """Pass the first intact checkpoint of `offered` (newest first) to `resume`, which may raise Damaged.

    Returns the milestone of the restored run, 0 when no checkpoint was intact, and one sentence per damaged one.
    """
    damaged: list[str] = []
    for checkpoint in offered:
        file = checkpoint.file if is_file_of(run, checkpoint) else file_of(run, checkpoint.milestone)
        try:
            if file != checkpoint.file:
                where = f"is where run {run.name} keeps milestone {checkpoint.milestone}"
                raise Damaged(f"{where}, not {checkpoint.file[:200]!r}")
            resume(durable.read(experiment_dir / file, checkpoint.sha256, checkpoint.size_bytes))
        except Damaged as error:
            damaged.append(f"{file} {error}")
        else:
            return checkpoint.milestone, tuple(damaged)
    return 0, tuple(damaged)
