"""`esper-ab fsck`: what of an experiment is intact, and how to go on from it. Removes nothing that was recorded.

The journal is verified line by line, then the files that it vouches for: policies and copies of rewards and trainers
by their sha256, checkpoints by sha256 and size; then settings by the sha256 in their own file. A repair cuts the
journal at its first damaged line and keeps the rest beside it; that only the intact part counts is what every reader
and `resume` do from then on.
"""

from __future__ import annotations

import hashlib
import json as json_module
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path, PurePath

import click
import msgspec

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._experiment_directory import experiment_argument
from esper_ab.commands._leftovers import files_below, leftovers
from esper_ab.commands._options import shared_options
from esper_ab.contracts.below import remove_below
from esper_ab.contracts.errors import NO_ROOM, DiskFull, JournalError, UsageError
from esper_ab.contracts.messages import RewardCode
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.contracts.run_files import FILE_LIMIT_BYTES
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import is_command
from esper_ab.journal.events import AnyEvent
from esper_ab.journal.file import JOURNAL_NAME, OtherVersion, Reading, cut_off, read
from esper_ab.journal.fold import History, RunHistory, fold
from esper_ab.journal.lock import Lock, holder
from esper_ab.settings.request import read_toml
from esper_ab.stats.text import counted

DAMAGED = JournalError.exit_code
_LISTED = 8  # names in one line of text; --json has them all


@click.command(epilog=epilog("esper-ab fsck experiments/EXPERIMENT", "esper-ab fsck experiments/EXPERIMENT --repair"))
@experiment_argument
@click.option("--repair", "repairs", is_flag=True, help="Cut the journal at its first damaged line, keep what is cut "
              "off beside it, and remove temporary files of killed processes.")
@shared_options("json")
def command(experiment_dir: Path, repairs: bool, json: bool) -> int:
    """Verify EXPERIMENT's journal, policies and checkpoints; exit status 5 when something is damaged."""
    found = repair(experiment_dir) if repairs else examine(experiment_dir)
    click.echo(fsck_json(found) if json else fsck_text(found))
    return found.exit_status


class Behind(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes behind the last intact line of the journal, which a repair would cut off."""

    bytes: int
    lines: int  # an unfinished last one included


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not what the journal says of it."""

    file: str
    what: str


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the examination of an experiment directory."""

    experiment_dir: str
    in_use_by: str  # the process that has it now; its checkpoints come and go and were not checked
    lines: int  # intact ones, from the first on
    wall_time: str  # of the last intact line, ISO 8601
    episodes: int  # recorded in them
    evaluations: int
    damage: str  # of the journal; "" when there is none
    repairable: bool  # whether a cut would help
    behind: Behind | None
    faults: tuple[Fault, ...]
    leftovers: tuple[str, ...]  # temporary files of processes that were killed
    notes: tuple[str, ...] = ()  # what happened on the way and is no fault: waits for room on the disk
    done: tuple[str, ...] = ()  # what a repair did

    @property
    def exit_status(self) -> int:
        """0 when all is well or repaired, else that of a damaged journal."""
        return DAMAGED if self.damage or self.faults else 0


def examine(experiment_dir: Path) -> Findings:
    """Findings about the whole of `experiment_dir`, which is not changed. UsageError when there is no journal."""
    path = experiment_dir / JOURNAL_NAME
    user = holder(experiment_dir)
    reading = read(path)
    history, damage, repairable = _intact(reading)
    if not history and not damage and not user:
        damage = "no event was recorded: launch it anew, under the same name"
    runs = history.runs.values() if history else ()
    return Findings(
        experiment_dir=str(experiment_dir), in_use_by=str(user) if user else "",
        lines=reading.lines, wall_time=reading.wall_time,
        episodes=sum(len(run.columns) for run in runs), evaluations=sum(run.evaluation is not None for run in runs),
        damage=damage, repairable=repairable,
        behind=_behind(path, reading.intact_bytes) if damage else None if user else _unfinished(reading),
        faults=(
            *_faults(experiment_dir, runs, checkpoints=not user),
            *_reward_faults(experiment_dir, {code for run in runs for code in run.spec.reward_code if code.folder}),
            *_trainer_faults(experiment_dir, runs),
            *_settings_faults(experiment_dir),
        ),
        leftovers=() if user else tuple(str(one.relative_to(experiment_dir)) for one in leftovers(experiment_dir)),
        notes=history.pauses if history else (),
    )  # fmt: skip


def repair(experiment_dir: Path) -> Findings:
    """Cut the journal at its first damage, keep what is cut off, and remove temporary files; the findings after that.

    UsageError when somebody has the experiment directory; DiskFull, with nothing changed, without room for what is cut
    off.
    """
    read(experiment_dir / JOURNAL_NAME)  # refuses a directory that is none before a lock is made in it
    try:
        with closing(Lock(experiment_dir)):
            done = _repaired(experiment_dir)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise DiskFull(f"no room in {experiment_dir} to keep what is cut off; nothing was cut; make room") from None
        raise UsageError(f"{experiment_dir} cannot be repaired: {error.strerror} ({error.filename})") from None
    return msgspec.structs.replace(examine(experiment_dir), done=done)


def _repaired(experiment_dir: Path) -> tuple[str, ...]:
    """Repair `experiment_dir`, whose lock is held; what was done, a sentence each."""
    path = experiment_dir / JOURNAL_NAME
    reading = read(path)
    history, _, repairable = _intact(reading)
    done = []
    if history and (repairable or reading.torn_bytes):
        size = path.stat().st_size - reading.intact_bytes
        kept = cut_off(experiment_dir, reading.intact_bytes, reading.lines)
        done.append(f"cut {size} bytes off the journal behind line {reading.lines}; they are in {kept.name}")
    for leftover in tuple(leftovers(experiment_dir)):
        name = leftover.relative_to(experiment_dir)
        remove_below(experiment_dir, name)
        done.append(f"removed {name}")
    return tuple(done)


def _intact(reading: Reading) -> tuple[History | None, str, bool]:
    """A journal up to its first damage, folded as it is read; the damage, "" for none; whether a cut there helps."""
    damage: list[tuple[str, bool]] = []

    def until_damaged() -> Iterator[AnyEvent]:
        try:
            yield from reading
        except OtherVersion as error:
            damage.append((str(error), False))
        except JournalError as error:
            damage.append((str(error).partition("; the ")[0], reading.lines > 0))

    events = until_damaged()
    try:
        return fold(events, keeps_records=False), *next(iter(damage), ("", False))
    except JournalError as error:
        deque(events, maxlen=0)  # a damaged line further on is what is told
        what = f"its lines are intact, but {error}: no journal of this tool" if reading.lines else ""
        return None, next(iter(damage), (what, False))[0], False


def _unfinished(reading: Reading) -> Behind | None:
    """Return the unfinished line that was read last; of a journal that is written to it may be whole by now."""
    torn = reading.torn_bytes
    return Behind(bytes=torn, lines=1) if torn else None


def _behind(path: Path, at: int) -> Behind | None:
    """Return what a damaged journal holds from byte `at` on; None when nothing."""
    with open_to_read(path) as file:
        file.seek(at)
        lines = [len(line) for line in file]
    return Behind(bytes=sum(lines), lines=len(lines)) if lines else None


# --- the files that the journal vouches for ---


def _faults(experiment_dir: Path, runs: Iterable[RunHistory], *, checkpoints: bool) -> Iterator[Fault]:
    for run in runs:
        if run.evaluation is not None:
            what = _wrong(experiment_dir, run.evaluation.policy_file, run.evaluation.policy_sha256, None)
            if what:
                yield Fault(file=run.evaluation.policy_file, what=f"policy of {run.ref.name}: {what}")
        if checkpoints:
            yield from _checkpoint_faults(experiment_dir, run)


def _checkpoint_faults(experiment_dir: Path, run: RunHistory) -> Iterator[Fault]:
    """Faults of a run's checkpoints: the newest is needed until the run is at its end, older ones may be gone."""
    recorded = {checkpoint.milestone: checkpoint for checkpoint in run.checkpoints}
    newest = max(recorded, default=0) if run.expected else 0
    for milestone, checkpoint in recorded.items():
        if milestone != newest and not (experiment_dir / checkpoint.file).is_file():
            continue
        what = _wrong(experiment_dir, checkpoint.file, checkpoint.sha256, checkpoint.size_bytes)
        if what:
            use = "resume goes further back" if run.expected else "it is of no use any more"
            yield Fault(file=checkpoint.file, what=f"checkpoint {milestone} of {run.ref.name}: {what}; {use}")


def _reward_faults(experiment_dir: Path, codes: Iterable[RewardCode]) -> Iterator[Fault]:
    for code in codes:
        folder = experiment_dir / code.folder
        files = [path.relative_to(folder).as_posix() for path in files_below(folder) if path.suffix != ".pyc"]
        yield from _copy_faults(experiment_dir, code.folder, files, code.sha256, code.reference)


def _trainer_faults(experiment_dir: Path, runs: Iterable[RunHistory]) -> Iterator[Fault]:
    """Faults of copies of Python trainers; the files of a command are the user's own."""
    orders = (run.spec.trainer for run in runs if run.spec.trainer and not is_command(run.spec.trainer.reference))
    for order in {order.folder: order for order in orders}.values():
        yield from _copy_faults(experiment_dir, order.folder, order.files, order.sha256, order.reference)


def _copy_faults(
    experiment_dir: Path, folder: str, files: Sequence[str], sha256: str, reference: str
) -> Iterator[Fault]:
    outside = any({"..", "/"} & set(PurePath(folder, file).parts) for file in files)
    try:
        intact = not outside and source_sha256(experiment_dir / folder, files) == sha256
    except OSError:
        intact = False
    if not intact:
        what = f"copy of {reference}: it is not what was copied there; resume refuses it"
        yield Fault(file=folder, what=what)


def _settings_faults(experiment_dir: Path) -> Iterator[Fault]:
    for path in (experiment_dir / "experiment.toml", *sorted(experiment_dir.glob("runs/*/config.toml"))):
        try:
            if path.exists():
                read_toml(path)
        except UsageError as error:
            yield Fault(file=str(path.relative_to(experiment_dir)), what=str(error).removeprefix(f"{path}: "))


def _wrong(experiment_dir: Path, file: str, sha256: str, size_bytes: int | None) -> str:
    """Say what is wrong with a file recorded with this sha256 and size (None: any); "" when nothing is."""
    path = experiment_dir / file
    if not path.is_file():
        return "missing"
    try:
        with open_to_read(path) as content:
            size = content.seek(0, os.SEEK_END)
            if size > FILE_LIMIT_BYTES or size_bytes not in (None, size):
                return f"{size} bytes, recorded with {size_bytes or 'fewer'}"
            content.seek(0)
            found = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if found == sha256 else f"sha256 {found[:12]}…, recorded with {sha256[:12]}…"


# --- in words ---


def fsck_json(found: Findings) -> str:
    """The findings as one JSON object: the fields of Findings, and `exit_status`."""
    told = msgspec.to_builtins(found) | {"exit_status": found.exit_status}
    return json_module.dumps(told)  # not msgspec's: a path may have bytes that are no UTF-8


def fsck_text(found: Findings) -> str:
    """The findings in words: a line for each, and last what to do."""
    last = f", the last of {found.wall_time}" if found.wall_time else ""
    lines = [
        f"{found.experiment_dir}: {counted(found.lines, 'line')} of the journal {'is' if found.lines == 1 else 'are'} "
        f"intact{last}; "
        f"{counted(found.episodes, 'episode')}, {counted(found.evaluations, 'evaluation')}"
    ]
    lines += [f"repaired: {one}" for one in found.done]
    lines += [f"note: {one}" for one in found.notes]
    if found.in_use_by:
        lines.append(f"in use by {found.in_use_by}: checkpoints were not checked")
    if found.damage:
        lines.append(f"damaged: {found.damage}")
    if found.behind:
        lines.append(_behind_text(found.behind, torn=not found.damage))
    lines += [f"damaged: {fault.file}: {fault.what}" for fault in found.faults]
    if found.leftovers:
        lines.append(f"temporary files of a killed process: {_some(found.leftovers)}; --repair removes them")
    return "\n".join([*lines, _verdict(found)])


def _behind_text(behind: Behind, *, torn: bool) -> str:
    size = counted(behind.bytes, "byte")
    if torn:
        return f"an unfinished line follows, {size}: it counts as not written, resume cuts it off"
    return f"from there on: {counted(behind.lines, 'line')}, {size}"


def _verdict(found: Findings) -> str:
    if found.damage and found.repairable:
        cut = shell_command("fsck", found.experiment_dir, "--repair")
        rest = "keeps the rest beside it; what was recorded there, resume does again"
        return f"`{cut}` cuts the journal behind line {found.lines} and {rest}"
    if found.damage:
        return "this cannot be repaired by a cut; nothing was changed"
    if found.faults:
        return "the journal is intact; the files named above cannot be repaired"
    return "all is well"


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
