"""A stretch of a journal, read for its numbers: every line's CRC and place in the chain, of episodes the columns only.

Of an episode's line what reports need is decoded, and its seed events are skipped: a fifth of the time of the whole.
The first episode line of every stretch is decoded as a whole, too: a process writes all its lines in one way, so what
another version wrote is noticed as it is by `file.Reading`.
"""

from __future__ import annotations

import zlib
from array import array
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from esper_ab.contracts.records import Checkpoint
from esper_ab.journal.columns import Columns, row_of

CHUNK_BYTES = 32 << 20
CHECKPOINTS_KEPT = 3  # of each run and stretch, the newest: more are never asked for
_CRC_KEY = b',"crc":"'
_TAIL_BYTES = len(_CRC_KEY) + 8 + len(b'"}\n')
_EPISODE, _RELEASED = b'"event":{"kind":"episode"', b'"event":{"kind":"released"'
_KIND_WITHIN = 120  # bytes from the start of a line, which `n`, `prev` and `t` take less of
_EVENTS, _EVENTS_END = b',"seed_events":[', b'],"timing":'  # as no text can hold them: its quotes are escaped


class _Env(msgspec.Struct, gc=False):
    final_accuracy: float
    reward_sum: float | None
    params_added: int
    host_params: int
    steps: int
    op_counts: tuple[int, ...]
    diverged: bool


class _Use(msgspec.Struct, gc=False):
    entropy: float | None
    learnable: float


class _Update(msgspec.Struct, gc=False):
    policy_loss: float | None
    value_loss: float | None
    entropy: float | None
    op_entropy: float | None
    approx_kl: float | None
    clip_fraction: float | None
    explained_variance: float | None
    grad_norm: float | None
    first_ratio_error: float | None
    ratio_max: float | None
    epochs_done: int
    stopped_by_kl: bool
    advantage_std: float | None
    return_mean: float | None
    heads: dict[str, _Use]


class _Timing(msgspec.Struct, gc=False):
    total_s: float


class _Run(msgspec.Struct, gc=False):
    run: str


class _Record(msgspec.Struct, gc=False):
    run: _Run
    episode: int
    envs: list[_Env]
    ppo: _Update | None
    timing: _Timing
    digest: str


class _Event(msgspec.Struct, gc=False):
    record: _Record
    checkpoint: Checkpoint | None = None
    observations: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct, gc=False):
    n: int
    prev: str
    event: _Event


class _Release(msgspec.Struct, gc=False, tag_field="kind", tag="released"):
    point: int
    runs: tuple[str, ...]
    observations: msgspec.Raw = msgspec.Raw()


class _ReleaseLine(msgspec.Struct, gc=False):
    n: int
    prev: str
    event: _Release


_decode = msgspec.json.Decoder(_Line).decode
_decode_release = msgspec.json.Decoder(_ReleaseLine).decode


@dataclass(kw_only=True)
class RunPart:
    """One run's episodes in a stretch."""

    columns: Columns = field(default_factory=Columns)
    offsets: array[int] = field(default_factory=lambda: array("q"))  # bytes from the start of the file, by episode
    checkpoints: list[Checkpoint] = field(default_factory=list)
    observations: bytes = b""  # JSON of the newest moments reported, where they are shared


@dataclass(kw_only=True)
class Stretch:
    """What stands between two line ends of a journal, as far as it is intact."""

    start: int  # bytes from the start of the file
    first: tuple[int, str] | None = None  # n and prev of its first line
    lines: int = 0  # intact ones
    last_crc: str = ""
    runs: dict[str, RunPart] = field(default_factory=dict)
    released: dict[str, int] = field(default_factory=dict)  # by run: the last point
    others: list[bytes] = field(default_factory=list)  # lines that are no episodes, and the first that is one
    ends_in_numbers: bool = False  # its last line is not among the others
    last_line: bytes = b""
    torn_bytes: int = 0
    doubtful: bool = False  # something is not as it must be: who reads line by line says what


def stretches(path: Path, start: int, chunk_bytes: int = CHUNK_BYTES) -> list[tuple[int, int]]:
    """(from, to) in bytes, each ending at the end of a line; the last one may be torn."""
    found = []
    with path.open("rb") as file:
        size = file.seek(0, 2)
        while start < size:
            file.seek(min(start + chunk_bytes, size))
            file.readline()
            end = file.tell()
            found.append((start, end))
            start = end
    return found


def read_stretch(path: str, start: int, end: int) -> Stretch:
    """Never raises for what is in the file."""
    found = Stretch(start=start)
    with open(path, "rb", buffering=1 << 20) as file:  # noqa: PTH123  as in a process of its own
        file.seek(start)
        at = start
        for data in file:
            if at >= end or not _take(found, data, at):
                break
            at += len(data)
    return found


def _take(found: Stretch, data: bytes, at: int) -> bool:
    """One line; False when it is torn or doubtful."""
    if not data.endswith(b"\n"):
        found.torn_bytes = len(data)
        return False
    crc = b"%08x" % zlib.crc32(memoryview(data)[:-_TAIL_BYTES])
    if data[-_TAIL_BYTES:] != b'%s%s"}\n' % (_CRC_KEY, crc) or not _add(found, data, at):
        found.doubtful = True
        return False
    found.lines += 1
    found.last_crc = crc.decode()
    found.last_line = data
    return True


class _Place(msgspec.Struct, gc=False):
    n: int
    prev: str


_place = msgspec.json.Decoder(_Place).decode


def _add(found: Stretch, data: bytes, at: int) -> bool:
    """False when the line does not follow from the one before, or cannot be read."""
    line: _Line | _ReleaseLine | _Place
    try:
        if data.find(_EPISODE, 0, _KIND_WITHIN) > 0:
            line = _decode(_without_events(data))
        else:
            line = _decode_release(data) if data.find(_RELEASED, 0, _KIND_WITHIN) > 0 else _place(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    if found.first is None:
        found.first = line.n, line.prev
    elif (line.n, line.prev) != (found.first[0] + found.lines, found.last_crc):
        return False
    if isinstance(line, _Line):
        if not found.runs:
            found.others.append(data)
        if not _add_episode(found, line.event, at):
            return False
    elif isinstance(line, _ReleaseLine) and not line.event.observations:
        for name in line.event.runs:
            found.released[name] = max(found.released.get(name, -1), line.event.point)
    else:
        found.others.append(data)
    found.ends_in_numbers = not found.others or found.others[-1] is not data
    return True


def _without_events(data: bytes) -> bytes:
    begin = data.find(_EVENTS)
    end = data.rfind(_EVENTS_END)
    return data[: begin + len(_EVENTS)] + data[end:] if 0 < begin < end else data


def _add_episode(found: Stretch, event: _Event, at: int) -> bool:
    """False for an episode that does not come after the one before: nobody writes that."""
    record = event.record
    part = found.runs.get(record.run.run)
    if part is None:
        part = found.runs[record.run.run] = RunPart()
    if part.offsets and record.episode <= part.columns.episodes[-1]:
        return False
    update = record.ppo
    part.columns.host_params.update([env.host_params for env in record.envs])
    part.columns.add(
        record.episode, record.digest, row_of(record.envs, update, record.timing.total_s),
        {} if update is None else update.heads,
    )  # fmt: skip
    part.offsets.append(at)
    if event.checkpoint is not None:
        part.checkpoints.append(event.checkpoint)
        del part.checkpoints[:-CHECKPOINTS_KEPT]
    if event.observations:
        part.observations = bytes(event.observations)
    return True
