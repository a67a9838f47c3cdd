"""A journal of another version of esper_ab, read in stretches: what is unknown is told of as line by line."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support.journals import one_replicate, write

from esper_ab.journal.events import AnyEvent, EpisodeRecorded, ExperimentContinued, PointReleased
from esper_ab.journal.fast import chunk
from esper_ab.journal.file import JOURNAL_NAME, OtherVersion
from esper_ab.journal.load import load

NEVER = 1 << 60
NEW = b'"GERMINATED",', b'"GERMINATED","new",'  # a seed event with one number more


@pytest.fixture(params=[2_000, 50_000, 32 << 20])
def chunk_bytes(request, monkeypatch):
    """Many stretches, some and one; the smallest are of a line or two."""
    monkeypatch.setattr(chunk.stretches, "__defaults__", (request.param,))


def rewrite(run_dir: Path, change: Callable[[int, bytes], bytes]) -> None:
    """Every line as another version writes it, which is what `change` makes of its place and of it; CRCs are right."""
    path, prev = run_dir / JOURNAL_NAME, b"00000000"
    lines = path.read_bytes().splitlines()
    for place, line in enumerate(lines):
        body = line[: line.rindex(b',"crc"')].replace(line[line.index(b'"prev":"') + 8 :][:8], prev, 1)
        body = change(place, body)
        prev = b"%08x" % zlib.crc32(body)
        lines[place] = body + b',"crc":"' + prev + b'"}'
    path.write_bytes(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("of", ["episode", "released"])
@pytest.mark.usefixtures("chunk_bytes")
def test_an_unknown_field_is_told_of_in_any_line(tmp_path, of):
    run_dir = write(tmp_path / "run", one_replicate())
    kind, changed = b'"kind":"%s"' % of.encode(), []

    def change(place: int, body: bytes) -> bytes:
        if place < 18 or b'"event":{' + kind not in body or changed:
            return body
        changed.append(place)
        return body.replace(kind, kind + b',"mood":1', 1)

    rewrite(run_dir, change)
    assert changed
    with pytest.raises(OtherVersion, match="unknown field `mood`") as simple:
        load(run_dir, NEVER)
    with pytest.raises(OtherVersion) as fast:
        load(run_dir, 0)
    assert str(fast.value) == str(simple.value)


@pytest.mark.usefixtures("chunk_bytes")
def test_an_unknown_field_is_told_of_deep_in_an_episode_by_another_writer(tmp_path):
    """Who goes on with a journal begins with a line that is neither an episode nor a release."""
    events = one_replicate()
    middle = 1 + next(n for n, event in enumerate(events) if isinstance(event, PointReleased) and event.point == 3)
    continued = ExperimentContinued(versions={"esper_ab": "2"}, machine={}, code={})
    run_dir = write(tmp_path / "run", [*events[:middle], continued, *events[middle:]])
    old, new = b'"val_loss":', b'"mood":1,"val_loss":'
    rewrite(run_dir, lambda place, body: body.replace(old, new) if place > middle else body)
    with pytest.raises(OtherVersion, match="unknown field `mood`"):
        load(run_dir, 0)


@pytest.mark.usefixtures("chunk_bytes")
def test_seed_events_of_another_version_are_told_of_though_the_first_episodes_have_none(tmp_path):
    """A policy that has not learnt to germinate, or a group that never does."""
    events = [_without_seed_events(event) for event in one_replicate()]
    run_dir = write(tmp_path / "run", events)
    rewrite(run_dir, lambda _, body: body.replace(*NEW))
    with pytest.raises(OtherVersion) as simple:
        load(run_dir, NEVER)
    with pytest.raises(OtherVersion) as fast:
        load(run_dir, 0)
    assert str(fast.value) == str(simple.value)


def _without_seed_events(event: AnyEvent) -> AnyEvent:
    """Of the first three episodes."""
    if not isinstance(event, EpisodeRecorded) or event.record.episode > 2:
        return event
    return EpisodeRecorded(record=msgspec.structs.replace(event.record, seed_events=()))


def test_an_episode_of_another_version_is_told_of_when_it_is_asked_for(tmp_path):
    """When only what stands in some later seed events is unknown."""
    run_dir = write(tmp_path / "run", one_replicate())
    rewrite(run_dir, lambda place, body: body.replace(*NEW) if place > 15 else body)
    with pytest.raises(OtherVersion) as simple:
        load(run_dir, NEVER)
    with pytest.raises(OtherVersion) as fast:
        [run.curve() for run in load(run_dir, 0).history.runs.values()]
    assert str(fast.value) == str(simple.value)
