"""A key given to wandb.log, which the stand-in for wandb keeps in a file."""

from __future__ import annotations

from esper_ab.contracts.regular_file import read_regular
from workers.kinds.trainer.outcome_sources.left import Found, Left

WANDB_FILE = "wandb-values.txt"  # below {out}; written by standin/wandb.py


def read(key: str, left: Left) -> Found:
    """Return the last number logged under `key`; ValueError if there is none."""
    try:
        return Found(float(read_regular(left.out / WANDB_FILE).split()[-1]), f"wandb.log, {key}", f"wandb:{key}")
    except FileNotFoundError:
        raise ValueError(
            f"the script logged no number {key!r} with wandb.log; does it need a flag for that, like CleanRL's --track?"
        ) from None
