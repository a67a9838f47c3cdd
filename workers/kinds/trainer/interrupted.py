"""What an interrupted attempt of a command's run has left, for a command that continues from it by {resume}."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.trainer import RESUME, TrainerOrder, TrainerValue, placeholders
from workers.kinds.trainer import words
from workers.kinds.trainer.words import CommandLine

_MARK_BYTES = 1 << 10


def prepare_folder(root: Path, order: TrainerOrder, line: CommandLine, values: Mapping[str, TrainerValue]) -> None:
    """Empty a run's folder, `order.out` below `root`, unless the command can continue from its files.

    A mark beside the folder says with which files of the command it was begun, because a run does not continue with
    others.
    """
    if RESUME not in placeholders(order.reference):
        words.fresh_folder(root, order.out)
        return
    mark = f"{order.out}.sha256"
    if _read(root / mark) != order.sha256 or not line.can_resume(values):
        words.fresh_folder(root, order.out)
        write_below(root, mark, order.sha256.encode())


def _read(mark: Path) -> str:
    try:
        return read_regular(mark, _MARK_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""
