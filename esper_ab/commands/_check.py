"""Check an experiment directory for damage, without changing it.

First the journal is verified line by line, and then the files whose digests the journal records: policies and copies of
rewards and trainers by sha256, and checkpoints by sha256 and size. A settings file has its own sha256. All readers, and
`resume`, use only the intact lines before the first damage.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import BinaryIO

import msgspec

from esper_ab.commands._removable import files_below, removable
from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.contracts.experiment_files import FILE_LIMIT_BYTES
from esper_ab.contracts.files import open_to_read
from esper_ab.contracts.messages import RewardCode
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import TrainerOrder, is_command
from esper_ab.contracts.wording import counted, shell_command
from esper_ab.journal.events import AnyEvent
from esper_ab.journal.file import JOURNAL_NAME, OtherVersion, Reading, read
from esper_ab.journal.fold import History, Inconsistent, RunHistory, fold
from esper_ab.journal.lock import holder
from esper_ab.settings.request import read_toml

_PART_BYTES = 1 << 20
_LISTED = 8  # file names on one line of text; --json lists them all


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking one experiment directory."""

    experiment_dir: str
    in_use_by: str  # the process that holds the directory; its checkpoints still change, so they are not checked
    lines: int  # intact lines, counted from the first
    wall_time: str  # of the last intact line, ISO 8601
    episodes: int  # recorded in the intact lines
    evaluations: int
    damage: str  # of the journal; "" if none
    repairable: bool  # whether cutting the journal would help
    lines_behind: int  # lines after the intact ones; the last may be unfinished
    faults: dict[str, str]  # file -> what is wrong with it
    removable: tuple[str, ...]  # files that `tidy` would remove
    removable_bytes: int

    @property
    def exit_status(self) -> int:
        """Exit status: 0 if nothing is damaged, else that of a damaged journal."""
        return JournalError.exit_code if self.damage or self.faults else 0


def examine(experiment_dir: Path) -> Findings:
    """Check the whole of `experiment_dir`; UsageError if it has no journal."""
    user = holder(experiment_dir)
    reading = read(experiment_dir / JOURNAL_NAME)
    history, damage, repairable = fold_intact(reading)
    if not history and not damage and not user:
        damage = "no event was recorded; launch the experiment again under the same name"
    behind = 1 if reading.torn_bytes and not user else 0  # a line still being written may be whole by now
    if damage:
        with open_to_read(experiment_dir / JOURNAL_NAME) as file:
            file.seek(reading.intact_bytes)
            behind = _count_lines(file)
    runs = tuple(history.runs.values()) if history else ()
    unneeded = removable(experiment_dir, history) if history and not user else None
    return Findings(
        experiment_dir=str(experiment_dir), in_use_by=str(user) if user else "",
        lines=reading.lines, wall_time=reading.wall_time,
        episodes=sum(len(run.columns) for run in runs), evaluations=sum(run.evaluation is not None for run in runs),
        damage=damage, repairable=repairable, lines_behind=behind,
        faults=dict(_faults(experiment_dir, runs, checkpoints=not user)),
        removable=tuple(map(str, unneeded.files)) if unneeded else (),
        removable_bytes=unneeded.size_bytes if unneeded else 0,
    )  # fmt: skip


def _count_lines(file: BinaryIO) -> int:
    """Return the number of lines from here on, including an unfinished last one, however long they are."""
    count, last = 0, b"\n"
    while part := file.read(_PART_BYTES):
        count += part.count(b"\n")
        last = part[-1:]
    return count + (last != b"\n")


def fold_intact(reading: Reading) -> tuple[History | None, str, bool]:
    """Fold a journal up to its first damage.

    Return the history, the damage ("" if there is none), and whether cutting the journal would repair it.
    """
    damage, helps = "", False

    def until_damaged() -> Iterator[AnyEvent]:
        nonlocal damage, helps
        try:
            yield from reading
        except OtherVersion as error:
            damage = str(error)
        except JournalError as error:
            damage, helps = str(error).partition("; the ")[0], reading.lines > 0

    events = until_damaged()
    try:
        return fold(events, keeps_records=False), damage, helps
    except Inconsistent as error:
        deque(events, maxlen=0)  # read to the end, because damage in a later line is what we report
        foreign = f"its lines are intact, but {error}, so it is not a journal of this tool" if reading.lines else ""
        return None, damage or foreign, False


# --- files whose digests the journal records, and what is wrong with them ---


def _faults(experiment_dir: Path, runs: Sequence[RunHistory], *, checkpoints: bool) -> Iterator[tuple[str, str]]:
    for run in runs:
        yield from _run_faults(experiment_dir, run, checkpoints=checkpoints)
    for code in {code for run in runs for code in run.spec.reward_code if code.folder}:
        folder = experiment_dir / code.folder
        files = [path.relative_to(folder).as_posix() for path in files_below(folder) if path.suffix != ".pyc"]
        yield from _copy_faults(experiment_dir, code, files)
    for order in {run.spec.trainer.folder: run.spec.trainer for run in runs if run.spec.trainer}.values():
        if not is_command(order.reference):  # a command's files are the user's own
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
        if what := _wrong(experiment_dir / file, run.evaluation.policy_sha256, None):
            yield file, f"policy of {run.ref.name}: {what}"
    recorded = {one.milestone: one for one in run.checkpoints} if checkpoints else {}
    newest = max(recorded, default=0) if run.expected else 0
    for milestone, one in recorded.items():
        if milestone != newest and not (experiment_dir / one.file).is_file():
            continue
        if what := _wrong(experiment_dir / one.file, one.sha256, one.size_bytes):
            use = "resume starts from an earlier checkpoint" if run.expected else "it is no longer needed"
            yield one.file, f"checkpoint {milestone} of {run.ref.name}: {what}; {use}"


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
    """Describe how a file differs from the recorded sha256 and size (None: any size). Returns "" if the file matches.
    """
    if not path.is_file():
        return "missing"
    try:
        with open_to_read(path) as content:
            size = content.seek(0, os.SEEK_END)
            if size > FILE_LIMIT_BYTES or size_bytes not in (None, size):
                return f"it has {size} bytes, but {size_bytes or 'fewer'} were recorded"
            content.seek(0)
            found = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if found == sha256 else f"its sha256 is {found[:12]}…, but {sha256[:12]}… was recorded"


# --- as text ---


def describe(found: Findings) -> str:
    """Return the findings as text, one per line, and then the remedy."""
    last = f", the last from {found.wall_time}" if found.wall_time else ""
    lines = [
        f"{found.experiment_dir}: {counted(found.lines, 'line')} of the journal {'is' if found.lines == 1 else 'are'} "
        f"intact{last}; {counted(found.episodes, 'episode')}, {counted(found.evaluations, 'evaluation')}"
    ]
    if found.in_use_by:
        lines.append(f"in use by {found.in_use_by}: checkpoints were not checked")
    if found.damage:
        behind = f"; {counted(found.lines_behind, 'line')} not read" if found.lines_behind else ""
        lines.append(f"damaged: {found.damage}{behind}")
    elif found.lines_behind:
        lines.append("an unfinished line follows, which is ignored and which resume cuts off")
    lines += [f"damaged: {file}: {what}" for file, what in found.faults.items()]
    if files := found.removable:
        more = f" and {len(files) - _LISTED} more" if len(files) > _LISTED else ""
        shown = f"{', '.join(files[:_LISTED])}{more}"
        lines.append(f"tidy removes {counted(len(files), 'file')}, {found.removable_bytes / 1e6:.1f} MB: {shown}")
    return "\n".join([*lines, _remedy(found)])


def _remedy(found: Findings) -> str:
    if found.damage and found.repairable:
        cut = shell_command("tidy", found.experiment_dir, "--repair")
        rest = "saves the removed part to a file next to it; resume then repeats the work recorded in that part"
        return f"`{cut}` cuts the journal after line {found.lines} and {rest}"
    if found.damage:
        return "cutting the journal would not repair this damage"
    if found.faults:
        return "the journal is intact, but the files named above cannot be repaired"
    return "no damage found"
