"""Check an experiment directory for damage, without changing it.

First the journal is verified line by line, and then the files whose digests the journal records: policies and copies of
rewards and trainers by sha256, and checkpoints by sha256 and size. A settings file has its own sha256. All readers, and
`resume`, use only the intact lines before the first damage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from esper_ab.commands._check_files import file_faults
from esper_ab.commands._findings import Findings
from esper_ab.commands._removable import Removable, removable
from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.journal.events import AnyEvent
from esper_ab.journal.fold import History, Inconsistent, RunHistory, fold
from esper_ab.journal.lock import JOURNAL_NAME, holder
from esper_ab.journal.reading import OtherVersion, Reading, read

_PART_BYTES = 1 << 20


def examine(experiment_dir: Path) -> Findings:
    """Check the whole of `experiment_dir`; UsageError if it has no journal."""
    user = holder(experiment_dir)
    journal_reading = read(experiment_dir / JOURNAL_NAME)
    history, damage, is_repairable = fold_intact(journal_reading)
    if not history and not damage and not user:
        damage = "no event was recorded; launch the experiment again under the same name"
    lines_behind = 0
    if journal_reading.torn_bytes and not user:  # a line still being written may be whole by now
        lines_behind = 1
    if damage:
        with open_to_read(experiment_dir / JOURNAL_NAME) as file:
            file.seek(journal_reading.intact_bytes)
            lines_behind = _count_lines(file)
    runs: tuple[RunHistory, ...] = ()
    if history:
        runs = tuple(history.runs.values())
    unneeded_files = Removable()
    if history and not user:
        unneeded_files = removable(experiment_dir, history)
    in_use_by = ""
    if user:
        in_use_by = str(user)
    return Findings(
        experiment_dir=str(experiment_dir),
        in_use_by=in_use_by,
        lines=journal_reading.lines,
        wall_time=journal_reading.wall_time,
        episodes=sum(len(run.columns) for run in runs),
        evaluations=sum(run.evaluation is not None for run in runs),
        damage=damage,
        repairable=is_repairable,
        lines_behind=lines_behind,
        faults=dict(file_faults(experiment_dir, runs, checkpoints=not user)),
        removable=tuple(map(str, unneeded_files.files)),
        removable_bytes=unneeded_files.size_bytes,
    )


def _count_lines(file: BinaryIO) -> int:
    """Return the number of lines from here on, including an unfinished last one, however long they are."""
    count = 0
    last_byte = b"\n"
    while part := file.read(_PART_BYTES):
        count += part.count(b"\n")
        last_byte = part[-1:]
    return count + (last_byte != b"\n")


def fold_intact(journal_reading: Reading) -> tuple[History | None, str, bool]:
    """Fold a journal up to its first damage.

    Return the history, the damage ("" if there is none), and whether cutting the journal would repair it.
    """
    damage = ""
    helps = False

    def until_damaged() -> Iterator[AnyEvent]:
        nonlocal damage, helps
        try:
            yield from journal_reading
        except OtherVersion as error:
            damage = str(error)
        except JournalError as error:
            damage = str(error).partition("; the ")[0]
            helps = journal_reading.lines > 0

    events = until_damaged()
    try:
        return fold(events, keeps_records=False), damage, helps
    except Inconsistent as error:
        deque(events, maxlen=0)  # read to the end, because damage in a later line is what we report
        if journal_reading.lines and not damage:
            damage = f"its lines are intact, but {error}, so it is not a journal of this tool"
        return None, damage, False
