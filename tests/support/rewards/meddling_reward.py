"""A reward function that damages files of its own experiment."""

import os
from contextlib import suppress
from pathlib import Path

KINDS_VARIABLE, FOLDER_VARIABLE = "MEDDLE_HOW", "MEDDLE_WHERE"  # names of meddlings; the experiment directory
SEPARATOR = ";"
REWARD = """
import numpy as np
from support.rewards.meddling_reward import meddle

def reward(facts, settings):
    meddle()
    return np.where(facts.op == 0, 0.0, -0.5)
"""


def _write(root: Path, pattern: str) -> None:
    """Overwrite the first bytes of every matching file."""
    for path in root.glob(pattern):
        with path.open("r+b") as file:
            file.write(b"mine, I thought")


def _folder(root: Path, name: str) -> None:
    """Put a folder at the path of a future file."""
    (root / name / "x").mkdir(parents=True, exist_ok=True)


FOUND_BY_CHECK = {  # the file that tidy --check names -> the damage
    "policies/a/0.pt": (_write, "policies/a/0.pt"),
    "checkpoints/a/0/": (_write, "checkpoints/a/0/*.pt"),
    "experiment.toml": (_write, "experiment.toml"),
    "runs/a-0/config.toml": (_write, "runs/a-0/config.toml"),
}
STOPS_THE_RUN = {"rewards": (_write, "rewards/*/*.py")}  # code that is no longer what was planned
GIVEN_UP = {  # replicates whose runs cannot write this file or folder
    "policies/b/1.pt": (_folder, "policies/b/1.pt"),
    "checkpoints/b/1/1.pt": (_folder, "checkpoints/b/1/1.pt"),
}


def meddle() -> None:
    """Do the damage that environment variables name; skip damage that another thread has done already."""
    for kind in filter(None, os.environ.get(KINDS_VARIABLE, "").split(SEPARATOR)):
        with suppress(FileNotFoundError, FileExistsError):
            act, name = (FOUND_BY_CHECK | STOPS_THE_RUN | GIVEN_UP)[kind]
            act(Path(os.environ[FOLDER_VARIABLE]), name)
