"""Files whose digests the journal records, and what is wrong with them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from esper_ab.commands._removable import files_below
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.contracts.run_files import FILE_LIMIT_BYTES
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import TrainerOrder, is_command
from esper_ab.contracts.worker_order import RewardCode
from esper_ab.journal.fold import RunHistory
from esper_ab.settings.settings_file import read_toml


def file_faults(experiment_dir: Path, runs: Sequence[RunHistory], *, checkpoints: bool) -> Iterator[tuple[str, str]]:
    for run in runs:
        yield from _run_faults(experiment_dir, run, checkpoints=checkpoints)
    rewards: dict[RewardCode, None] = {}  # each once
    trainers: dict[str, TrainerOrder] = {}  # by folder
    for run in runs:
        rewards |= dict.fromkeys(code for code in run.spec.reward_code if code.folder)
        if run.spec.trainer:
            trainers[run.spec.trainer.folder] = run.spec.trainer
    for code in rewards:
        folder = experiment_dir / code.folder
        files = [path.relative_to(folder).as_posix() for path in files_below(folder) if path.suffix != ".pyc"]
        yield from _copy_faults(experiment_dir, code, files)
    for order in trainers.values():
        # A command's files are the user's own, and git checks those of a state when it writes them.
        if not is_command(order.reference) and order.tree is None:
            yield from _copy_faults(experiment_dir, order, order.files)
    for path in (experiment_dir / "experiment.toml", *sorted(experiment_dir.glob("runs/*/config.toml"))):
        try:
            if path.exists():
                read_toml(path)
        except UsageError as error:
            yield str(path.relative_to(experiment_dir)), str(error).removeprefix(f"{path}: ")


def _run_faults(experiment_dir: Path, run: RunHistory, *, checkpoints: bool) -> Iterator[tuple[str, str]]:
    """Yield faults of a run's policy and checkpoints.

    A missing checkpoint is a fault only if it is the newest of an unfinished run, because `resume` needs only that one.
    """
    if run.evaluation is not None:
        file = run.evaluation.policy_file
        if complaint := _wrong(experiment_dir / file, run.evaluation.policy_sha256, None):
            yield file, f"policy of {run.ref.name}: {complaint}"
    if not checkpoints:
        return
    checkpoint_by_milestone = {checkpoint.milestone: checkpoint for checkpoint in run.checkpoints}
    newest_milestone = max(checkpoint_by_milestone, default=0) if run.expected else 0
    for milestone, checkpoint in checkpoint_by_milestone.items():
        path = experiment_dir / checkpoint.file
        if milestone != newest_milestone and not path.is_file():
            continue
        if complaint := _wrong(path, checkpoint.sha256, checkpoint.size_bytes):
            if run.expected:
                use = "resume starts from an earlier checkpoint"
            else:
                use = "it is no longer needed"
            yield checkpoint.file, f"checkpoint {milestone} of {run.ref.name}: {complaint}; {use}"


def _copy_faults(
    experiment_dir: Path, code: RewardCode | TrainerOrder, files: Sequence[str]
) -> Iterator[tuple[str, str]]:
    outside = any({"..", "/"} & set(PurePath(code.folder, file).parts) for file in files)
    try:
        intact = not outside and source_sha256(experiment_dir / code.folder, files) == code.sha256
    except OSError:
        intact = False
    if not intact:
        yield code.folder, f"copy of {code.reference}: its content has changed; resume refuses it"


def _wrong(path: Path, sha256: str, size_bytes: int | None) -> str:
    """Describe how a file differs from the recorded sha256 and size (None: any size).

    Returns "" if the file matches.
    """
    if not path.is_file():
        return "missing"
    try:
        with open_to_read(path) as content:
            size = content.seek(0, os.SEEK_END)
            if size > FILE_LIMIT_BYTES or size_bytes not in (None, size):
                return f"it has {size} bytes, but {size_bytes or 'fewer'} were recorded"
            content.seek(0)
            actual_sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if actual_sha256 == sha256:
        return ""
    return f"its sha256 is {actual_sha256[:12]}…, but {sha256[:12]}… was recorded"
