"""Checks before anything starts: of the machine, by a child process that imports torch, and of the directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import EsperError, Setting, UsageError
from esper_ab.contracts.machine import Machine, Questions
from esper_ab.contracts.messages import Lane
from esper_ab.contracts.own_packages import child_command
from esper_ab.control import descriptors
from esper_ab.launchers import Launcher

_TIMEOUT_S = 120.0  # importing torch from a cold network disk takes tens of seconds
_LOG_BYTES_PER_ENV_EPISODE = 4096  # journal line and log, measured generously
_SPARE_BYTES = 64 << 20  # policies, report, and room for others


def examine(questions: Questions) -> Machine:
    """Answers of the module `workers.commands.describe`; EsperError with the end of its output when it has none."""
    environment = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **os.environ}
    command = child_command("workers.commands.describe", msgspec.json.encode(questions).decode())
    began = time.monotonic()
    try:
        child = subprocess.run(command, capture_output=True, env=environment, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise EsperError(f"the preflight gave no answer within {_TIMEOUT_S:.0f} s") from None
    took_s = time.monotonic() - began
    if child.returncode:
        last = (child.stderr.decode(errors="replace").strip() or "no output").splitlines()[-1]
        raise EsperError(f"the preflight (workers.commands.describe) ended with exit status {child.returncode}: {last}")
    try:
        # A user's reward may print while it is imported: the answer is the last line.
        found = msgspec.json.decode(child.stdout.strip().splitlines()[-1], type=Machine)
    except (msgspec.MsgspecError, IndexError) as error:
        raise EsperError(f"the preflight (workers.commands.describe) answered something else: {error}") from None
    return msgspec.structs.replace(found, start_s=took_s)


def expected_bytes(env_episodes: int) -> int:
    """Room an experiment directory may need, bytes."""
    return _SPARE_BYTES + env_episodes * _LOG_BYTES_PER_ENV_EPISODE


def check_experiment_dir(experiment_dir: Path, needed_bytes: int) -> None:
    """UsageError unless `experiment_dir` is new, can be made and has room; nothing is made."""
    if experiment_dir.exists():
        raise UsageError(
            f"{experiment_dir} exists already; choose another with ", Setting("name"), " or ", Setting("out")
        )
    parent = next(folder for folder in experiment_dir.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"{experiment_dir} cannot be made: {parent} is not a folder that can be written; choose another"
        )
    free_bytes = shutil.disk_usage(parent).free
    if free_bytes < needed_bytes:
        raise UsageError(
            f"{parent} has {free_bytes >> 20} MiB free, but the run may need {needed_bytes >> 20} MiB; make room, or "
            "choose another folder"
        )


def check_launcher(launcher: Launcher, lanes: Sequence[Lane]) -> None:
    """UsageError unless `launcher` can serve the lanes and this process may have the descriptors of their workers."""
    launcher.check_lanes(lanes)
    descriptors.check(len(lanes), launcher.descriptors)
