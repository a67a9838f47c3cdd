"""What a user's reward function may do, by mistake, to the files of the experiment that it is part of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

HOW, WHERE = "MEDDLE_HOW", "MEDDLE_WHERE"  # names of meddlings; the experiment directory
SEPARATOR = ";"
REWARD = """
import numpy as np
from support.meddling import meddle

def reward(facts, settings):
    meddle()
    return np.where(facts.op == 0, 0.0, -0.5)
"""


def _write(pattern: str) -> Callable[[Path], None]:
    """Over the first bytes of every such file that there is."""

    def act(root: Path) -> None:
        for path in root.glob(pattern):
            with path.open("r+b") as file:
                file.write(b"mine, I thought")

    return act


def _new(name: str) -> Callable[[Path], None]:
    """A file of one's own."""

    def act(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine")

    return act


def _folder(name: str) -> Callable[[Path], None]:
    """A folder where a file is to come."""
    return lambda root: (root / name / "x").mkdir(parents=True, exist_ok=True)


def _link(name: str) -> Callable[[Path], None]:
    """The folder or file is moved beside the experiment, and a link put in its place."""

    def act(root: Path) -> None:
        if not (root / name).is_symlink():
            elsewhere = root.parent / "elsewhere"
            (root / name).rename(elsewhere)
            (root / name).symlink_to(elsewhere)

    return act


def _removed(name: str) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        if not (root / "meddled").exists():  # once
            (root / "meddled").touch()
            shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()

    return act


HARMLESS = {
    "files of its own": _new("notes/mine.txt"),
    "a checkpoint that nobody recorded": _new("checkpoints/a/1/99.pt"),
    "a policy of a run that there is not": _new("policies/a/77.pt"),
    "an unfinished file": _new("checkpoints/a/1/.1.pt.4711-1"),
    "a log": _new("logs/w00.log"),
    "the summary that is still to come": _new("summary.txt"),
    "the verdict that is still to come": _new("verdict.json"),
    "the report that is still to come": _new("report.html"),
    ".lock": _write(".lock"),
    ".lock removed": _removed(".lock"),
}
FOUND = {  # by tidy --check, in this file
    "policies/a/0.pt": _write("policies/a/0.pt"),
    "checkpoints/a/0/": _write("checkpoints/a/0/*.pt"),
    "experiment.toml": _write("experiment.toml"),
    "runs/a-0/config.toml": _write("runs/a-0/config.toml"),
}
GIVEN_UP = {  # replicates whose runs cannot write this file or folder, or may not read it
    "rewards": _write("rewards/*/*.py"),
    "policies/b/1.pt": _folder("policies/b/1.pt"),
    "checkpoints/b/1/1.pt": _folder("checkpoints/b/1/1.pt"),
    "checkpoints": _link("checkpoints"),
    "policies": _link("policies"),
}
ALL = HARMLESS | FOUND | GIVEN_UP


def meddle() -> None:
    """As the environment says; what a thread beside this one has done already is done."""
    for how in filter(None, os.environ.get(HOW, "").split(SEPARATOR)):
        with suppress(FileNotFoundError, FileExistsError):
            ALL[how](Path(os.environ[WHERE]))
