"""Loading and following a journal: what its events say, with records that stay in the file."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support.column_numbers import numbers
from support.journals import failed_run, one_replicate, three_groups, write
from support.short_journal import EVENTS

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal import load as load_module
from esper_ab.journal.events import SCHEMA, AnyEvent, EpisodeRecorded, ExperimentContinued
from esper_ab.journal.file import JOURNAL_NAME, OtherVersion
from esper_ab.journal.fold import begin, fold
from esper_ab.journal.load import follow, load


def rewrite(experiment_dir: Path, change: Callable[[int, bytes], bytes]) -> None:
    """Every line as another version writes it, which is what `change` makes of its place and of it; CRCs are right."""
    path, prev = experiment_dir / JOURNAL_NAME, b"00000000"
    lines = path.read_bytes().splitlines()
    for place, line in enumerate(lines):
        body = line[: line.rindex(b',"crc"')].replace(line[line.index(b'"prev":"') + 8 :][:8], prev, 1)
        body = change(place, body)
        prev = b"%08x" % zlib.crc32(body)
        lines[place] = body + b',"crc":"' + prev + b'"}'
    path.write_bytes(b"\n".join(lines) + b"\n")


def said_twice() -> list[AnyEvent]:
    """A record that is there again, later, with another number: nobody writes that, and the last word counts."""
    events = one_replicate()
    place, first = next((i, event) for i, event in enumerate(events) if isinstance(event, EpisodeRecorded))
    return [*events[: place + 5], _taking_longer(first), *events[place + 5 :]]


def _taking_longer(event: EpisodeRecorded) -> EpisodeRecorded:
    """The same episode, of which another worker has sent another record."""
    timing = msgspec.structs.replace(event.record.timing, total_s=77.0)
    return EpisodeRecorded(record=msgspec.structs.replace(event.record, timing=timing))


@pytest.mark.parametrize("events", [one_replicate, three_groups, failed_run, said_twice])
def test_what_is_loaded_is_the_fold_of_the_events_and_its_records_are_in_the_file(tmp_path, events):
    loaded, folded = load(write(tmp_path / "run", events())), fold(events())
    assert (loaded.lines, loaded.torn_bytes) == (len(events()), 0)
    assert loaded.history == folded
    for name, run in folded.runs.items():
        assert numbers(loaded.history.runs[name].columns) == numbers(run.columns)
        assert loaded.history.runs[name].curve() == run.curve()


def test_a_torn_tail_is_counted(tmp_path):
    experiment_dir = write(tmp_path / "run", one_replicate())
    path = experiment_dir / JOURNAL_NAME
    *whole, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole) + last[:-5])
    loaded = load(experiment_dir)
    assert (loaded.lines, loaded.torn_bytes) == (len(whole), len(last) - 5)
    assert loaded.history == fold(one_replicate()[:-1])


def test_damage_is_told_although_the_journal_is_torn_after_it(tmp_path):
    """A torn tail is no damage, and excuses none before it."""
    experiment_dir = write(tmp_path / "run", one_replicate())
    path = experiment_dir / JOURNAL_NAME
    data = path.read_bytes()
    at = data.rindex(b'"kind":"episode"', 0, data.rindex(b'"kind":"episode"'))
    path.write_bytes(data[:at] + b'"kind":"Episode"' + data[at + 16 : -50])
    number = data[:at].count(b"\n") + 1
    with pytest.raises(JournalError, match=f"line {number}: its CRC does not match its contents"):
        load(experiment_dir)


def test_a_line_that_is_gone_is_noticed(tmp_path):
    experiment_dir = write(tmp_path / "run", one_replicate())
    path = experiment_dir / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:10] + lines[11:]))
    with pytest.raises(JournalError, match="line 11"):
        load(experiment_dir)


@pytest.mark.parametrize("of", ["episode", "released"])
def test_an_unknown_field_is_told_of_in_any_line(tmp_path, of):
    experiment_dir = write(tmp_path / "run", one_replicate())
    kind, changed = b'"kind":"%s"' % of.encode(), []

    def change(place: int, body: bytes) -> bytes:
        if place < 18 or b'"event":{' + kind not in body or changed:
            return body
        changed.append(place)
        return body.replace(kind, kind + b',"mood":1', 1)

    rewrite(experiment_dir, change)
    assert changed
    with pytest.raises(OtherVersion, match=f"line {changed[0] + 1}: .*unknown field `mood`"):
        load(experiment_dir)


def test_an_unknown_field_is_told_of_deep_in_an_episode_by_another_writer(tmp_path):
    """Who goes on with a journal begins with a line that is neither an episode nor a release."""
    events = one_replicate()
    continued = ExperimentContinued(versions={"esper_ab": "2"}, machine={}, code={})
    experiment_dir = write(tmp_path / "run", [*events[:20], continued, *events[20:]])
    old, new = b'"reward_sum":', b'"mood":1,"reward_sum":'
    rewrite(experiment_dir, lambda place, body: body.replace(old, new) if place > 20 else body)
    with pytest.raises(OtherVersion, match="unknown field `mood`"):
        load(experiment_dir)


@pytest.mark.parametrize("schema", [1, SCHEMA - 1, SCHEMA + 1])
def test_a_journal_of_another_schema_is_answered_by_one_line_that_names_its_version(tmp_path, schema):
    """Whether its lines would decode or not."""
    experiment_dir = write(tmp_path / "experiment", one_replicate())
    old, new = b'"schema":%d,' % SCHEMA, b'"schema":%d,' % schema
    rewrite(experiment_dir, lambda place, body: body.replace(old, new).replace(b'"milestone"', b'"point"'))
    with pytest.raises(OtherVersion, match=r"was written by esper_ab 0\.1\.0: read it with that version") as told:
        load(experiment_dir)
    assert "\n" not in str(told.value)


def test_a_journal_without_a_whole_line_is_not_there_yet(tmp_path, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    for data in (b"", journal_bytes[:20]):
        path.write_bytes(data)
        with pytest.raises(UsageError) as told:
            load(tmp_path)
        assert str(told.value) == f"{path} holds no event yet; try again when the experiment has started"


def test_a_journal_that_begins_with_something_else_is_none_of_this_tool(tmp_path, journal_bytes):
    (tmp_path / JOURNAL_NAME).write_bytes(journal_bytes)
    with pytest.raises(UsageError, match="does not begin with experiment_started: no journal of this tool"):
        load(tmp_path)


def test_a_journal_of_one_line_is_loaded(tmp_path):
    """The machine stopped right after it."""
    loaded = load(write(tmp_path / "run", one_replicate()[:1]))
    assert (loaded.lines, loaded.torn_bytes, loaded.wall_time) == (1, 0, "2026-01-01T00:00:00.000+00:00")
    assert loaded.history == begin(one_replicate()[0], keeps_records=False)


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100, 1 << 20])
def test_a_growing_journal_is_followed_line_by_line(tmp_path, monkeypatch, chunk_bytes):
    """Whatever part of a line is there, and however little is read at once."""
    monkeypatch.setattr(load_module, "_CHUNK_BYTES", chunk_bytes)
    data = write(tmp_path / "run", one_replicate()[:6]).joinpath(JOURNAL_NAME).read_bytes()
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(b"")
    following, seen = follow(path), []
    with path.open("ab", buffering=0) as file:
        for start in range(0, len(data), 999):
            file.write(data[start : start + 999])
            seen.extend(following)
            whole = data[: start + 999].count(b"\n")
            assert (len(seen), following.lines) == (whole, whole)
            assert following.intact_bytes == data.rfind(b"\n", 0, start + 999) + 1
    assert seen == one_replicate()[:6]
    assert list(following) == []


def test_what_is_cut_off_and_written_anew_is_followed(tmp_path, journal_bytes):
    """As a coordinator does that takes up a journal with an unfinished line."""
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(journal_bytes[:-9])
    following = follow(path)
    assert list(following) == EVENTS[:2]
    assert list(following) == []
    path.write_bytes(journal_bytes)
    assert list(following) == EVENTS[2:]


def test_only_a_journal_that_is_there_is_followed(tmp_path):
    with pytest.raises(UsageError, match="no journal at"):
        follow(tmp_path / JOURNAL_NAME)
