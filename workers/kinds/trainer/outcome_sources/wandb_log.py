"""A key given to wandb.log, which the stand-in for wandb keeps in a file, or which W&B itself keeps in its own.

A command whose outcome is `wandb:KEY` imports the stand-in. Where it runs another Python, or isolates it, W&B itself
may run in its offline mode, so its files are read, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.regular_file import read_regular
from workers.kinds.trainer.outcome_sources import curve
from workers.kinds.trainer.outcome_sources.left import Left, shortened
from workers.kinds.trainer.outcome_sources.values import Values

WANDB_FILE = "wandb-values.txt"  # below {out}; written by standin/wandb.py
_RUN_FILE = ".wandb"  # how the name of W&B's file of a run ends


def is_run_file(file: str) -> bool:
    """Whether a file is one that W&B keeps of a run, by its name."""
    return file.endswith(_RUN_FILE)


def read(key: str, left_output: Left) -> Values:
    """Return the numbers logged under `key`; ValueError if there is none."""
    try:
        logged = read_regular(left_output.out / WANDB_FILE).split()
    except FileNotFoundError:
        logged = []
    if logged:
        return Values(
            len(logged), lambda place: float(logged[place]), lambda place: f"wandb.log, {key}", f"wandb:{key}"
        )
    if any(map(is_run_file, left_output.files())):
        return read_offline(key, left_output)
    raise ValueError(
        f"the script logged no number {key!r} with wandb.log; does it need a flag for that, like CleanRL's --track?"
    )


def read_offline(key: str, output: Left) -> Values:
    """Return the numbers that W&B itself logged under `key`; ValueError if none did, or several of its runs."""
    files = [file for file in output.files() if is_run_file(file)]
    if not files:
        raise ValueError(
            f"the script left no file of W&B's offline mode in {{out}}; it left {shortened(output.files())}"
        )
    files_with_key = [file for file in files if curve.has(file, key, output)]
    _refuse_several(key, files_with_key)
    read_file = files[-1]
    if files_with_key:
        read_file = files_with_key[0]
    values = curve.read(read_file, key, output)
    return values.named(f"wandb-offline:{key}")


def _refuse_several(key: str, files: Sequence[str]) -> None:
    if len(files) > 1:
        raise ValueError(f"several runs of W&B have {key}: {shortened(files)}; log the outcome in one of them only")
