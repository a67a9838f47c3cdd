"""Trainers for tests: a Python file and a script, each with a fault that a test may choose."""

import sys
from pathlib import Path
from typing import Any

from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.source_files import copy_files, source_sha256
from esper_ab.contracts.trainer import TrainerOrder, TrainerQuestion, is_command
from esper_ab.contracts.worker_order import RunSpec
from support.plans.worker_orders import run_order

PYTHON = """
import random

import esper_ab


class Settings(esper_ab.TrainerSettings):
    lr: float = 0.1
    fault: str = ""


def train(run):
    fault, x = run.settings.fault, 0.0
    if fault != "ignores its state" and run.state is not None:
        x = run.state["x"] + (1.0 if fault == "resumes otherwise" else 0.0)
    for point in range(run.point, run.points):
        draw = random.Random(1 if fault == "ignores its seed" else run.seed("train", point))
        x += run.settings.lr * (random.random() if fault == "does not repeat" else draw.random())
        run.alive(1)
        yield run.Point({"score": float("nan") if fault == "breaks" else x, "Loss/train": -x}, state={"x": x})


def evaluate(run, state):
    return [state["x"]] * 3
"""
SCRIPT = """
import json, random, sys
seed, lr, out = sys.argv[1:]
random.seed(1 if lr == "0" else int(seed))
print("training with", lr)
if lr == "-1":
    raise ValueError("lr must be positive")
json.dump({"return": float(lr) + (random.SystemRandom() if lr == "9" else random).random()}, open(out + "/r.json", "w"))
"""

FUNCTION = """
import random


def train(seed, lr=0.1, fault=""):
    if fault == "raises":
        raise ValueError("lr must be positive")
    if fault == "exits":
        import os
        os._exit(3)
    draw = random.SystemRandom() if fault == "does not repeat" else random.Random(1 if fault == "no seed" else seed)
    scores = [lr * (step + draw.random()) for step in range(3)]
    return [{"score": score, "Loss/train": -score} for score in scores]
"""


SHELL = """
env > variables
echo "{\\"return\\": $1}" > "$2/r.json"
"""


def python_file(folder: Path) -> str:
    path = folder / "mine.py"
    path.write_text(PYTHON)
    return str(path)


def function(folder: Path) -> str:
    """Return FILE:NAME of a function, which returns a curve of three points."""
    path = folder / "of mine.py"
    path.write_text(FUNCTION)
    return f"{path}:train"


def command(folder: Path) -> str:
    (folder / "train.py").write_text(SCRIPT)
    return f"{sys.executable} train.py {{seed}} {{lr}} {{out}}"


def shell_command(folder: Path) -> str:
    """Return a command whose script writes its environment to a file."""
    (folder / "train.py").write_text(SHELL)
    return "sh train.py {seed} {out}"


def variables(folder: Path) -> dict[str, str]:
    """Return the variables that the script of `shell_command` had."""
    pairs = (line.split("=", 1) for line in (folder / "variables").read_text().splitlines())
    return {name: value for name, value in pairs if name not in ("_", "PWD", "OLDPWD", "SHLVL")}


def question(reference: str, folder: Path, **changes: Any) -> TrainerQuestion:
    fields: dict[str, Any] = {
        "reference": reference,
        "directory": str(folder),
        "groups": {"a": {"lr": "1"}, "b": {"lr": "2"}},
        "outcome": "r.json:return" if is_command(reference) else "score",
        "rehearsal": {},
        "points": 3,
        "evaluations": 0,
        "margin": 0.1,
        "rng_seed": 0,
        "threads": 1,
        "deterministic": True,
        "gpus": (),
    }
    return TrainerQuestion(**fields | changes)


def spec(reference: str, experiment_dir: Path, settings: dict[str, Any], **changes: Any) -> RunSpec:
    """Return the RunSpec of a trainer's run.

    A Python trainer is copied into `experiment_dir`, as planning does.
    """
    path = Path(reference.removesuffix(":train"))
    is_command_line = is_command(reference)
    files = ("train.py",) if is_command_line else (path.name,)
    if not is_command_line:
        (experiment_dir / "copy").mkdir(exist_ok=True)
        copy_files(path.parent, files, experiment_dir / "copy")
    folder = changes.pop("directory", path.parent)
    order = TrainerOrder(
        reference=reference,
        directory=str(folder),
        outcome=changes.pop("outcome", "r.json:return" if is_command_line else "score"),
        worst=changes.pop("worst", None),
        folder=str(folder) if is_command_line else "copy",
        files=files,
        sha256=source_sha256(folder if is_command_line else path.parent, files),
        metrics=changes.pop("metrics", {} if is_command_line else {"Loss/train": "loss_train"}),
        out="runs/a-0/out",
        resumes=changes.pop("resumes", not is_command_line),
    )
    defaults: dict[str, Any] = {
        "episodes": 1 if is_command_line else 3,
        "eval_episodes": 1 if is_command_line else 3,
        "rng_seed": 0,
    }
    return run_order(
        GroupSettings(trainer=settings),
        mode="",
        controller="trainer",
        experiment_digest="0" * 64,
        task="mine",
        n_envs=1,
        steps=1,
        telemetry=False,
        trainer=order,
        **defaults | changes,
    )
