"""Loading and following a journal. Reading in stretches reports one of another version as line by line does."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support.journals import one_replicate, write
from support.short_journal import EVENTS

from esper_ab.contracts.errors import UsageError
from esper_ab.journal import load as load_module
from esper_ab.journal.events import SCHEMA, AnyEvent, EpisodeRecorded, ExperimentContinued, MilestoneReleased
from esper_ab.journal.file import JOURNAL_NAME, OtherVersion
from esper_ab.journal.fold import begin
from esper_ab.journal.load import follow, load

NEVER = 1 << 60
NEW = b'"GERMINATED",', b'"GERMINATED","new",'  # a seed event with one number more


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


@pytest.mark.parametrize("of", ["episode", "released"])
def test_an_unknown_field_is_told_of_in_any_line(tmp_path, load_in_stretches, of):
    experiment_dir = write(tmp_path / "run", one_replicate())
    kind, changed = b'"kind":"%s"' % of.encode(), []

    def change(place: int, body: bytes) -> bytes:
        if place < 18 or b'"event":{' + kind not in body or changed:
            return body
        changed.append(place)
        return body.replace(kind, kind + b',"mood":1', 1)

    rewrite(experiment_dir, change)
    assert changed
    with pytest.raises(OtherVersion, match="unknown field `mood`") as simple:
        load(experiment_dir, NEVER)
    with pytest.raises(OtherVersion) as fast:
        load_in_stretches(experiment_dir)
    assert str(fast.value) == str(simple.value)


def test_an_unknown_field_is_told_of_deep_in_an_episode_by_another_writer(tmp_path, load_in_stretches):
    """Who goes on with a journal begins with a line that is neither an episode nor a release."""
    events = one_replicate()
    middle = 1 + next(
        n for n, event in enumerate(events) if isinstance(event, MilestoneReleased) and event.milestone == 3
    )
    continued = ExperimentContinued(versions={"esper_ab": "2"}, machine={}, code={})
    experiment_dir = write(tmp_path / "run", [*events[:middle], continued, *events[middle:]])
    old, new = b'"reward_sum":', b'"mood":1,"reward_sum":'
    rewrite(experiment_dir, lambda place, body: body.replace(old, new) if place > middle else body)
    with pytest.raises(OtherVersion, match="unknown field `mood`"):
        load_in_stretches(experiment_dir)


def test_seed_events_of_another_version_are_told_of_though_the_first_episodes_have_none(tmp_path, load_in_stretches):
    """A policy that has not learnt to germinate, or a group that never does."""
    events = [_without_seed_events(event) for event in one_replicate()]
    experiment_dir = write(tmp_path / "run", events)
    rewrite(experiment_dir, lambda _, body: body.replace(*NEW))
    with pytest.raises(OtherVersion) as simple:
        load(experiment_dir, NEVER)
    with pytest.raises(OtherVersion) as fast:
        load_in_stretches(experiment_dir)
    assert str(fast.value) == str(simple.value)


def _without_seed_events(event: AnyEvent) -> AnyEvent:
    """Of the first three episodes."""
    if not isinstance(event, EpisodeRecorded) or event.record.episode > 2:
        return event
    return EpisodeRecorded(record=msgspec.structs.replace(event.record, seed_events=()))


def test_an_episode_of_another_version_is_told_of_when_it_is_asked_for(tmp_path):
    """When only what stands in some later seed events is unknown."""
    experiment_dir = write(tmp_path / "run", one_replicate())
    rewrite(experiment_dir, lambda place, body: body.replace(*NEW) if place > 15 else body)
    with pytest.raises(OtherVersion) as simple:
        load(experiment_dir, NEVER)
    with pytest.raises(OtherVersion) as fast:
        [run.curve() for run in load(experiment_dir, 0).history.runs.values()]
    assert str(fast.value) == str(simple.value)


@pytest.mark.parametrize("schema", [1, SCHEMA - 1, SCHEMA + 1])
def test_a_journal_of_another_schema_is_answered_by_one_line_that_names_its_version(
    tmp_path, load_in_stretches, schema
):
    """Whether its lines would decode or not."""
    experiment_dir = write(tmp_path / "experiment", one_replicate())
    old, new = b'"schema":%d,' % SCHEMA, b'"schema":%d,' % schema
    rewrite(experiment_dir, lambda place, body: body.replace(old, new).replace(b'"milestone"', b'"point"'))
    for reader in (lambda path: load(path, NEVER), load_in_stretches):
        with pytest.raises(OtherVersion, match=r"was written by esper_ab 0\.1\.0: read it with that version") as told:
            reader(experiment_dir)
        assert "\n" not in str(told.value)


def test_a_journal_without_a_whole_line_is_not_there_yet(tmp_path, load_in_stretches, journal_bytes):
    path = tmp_path / JOURNAL_NAME
    for data in (b"", journal_bytes[:20]):
        path.write_bytes(data)
        for reader in (load, load_in_stretches):
            with pytest.raises(UsageError) as told:
                reader(tmp_path)
            assert str(told.value) == f"{path} holds no event yet; try again when the experiment has started"


def test_a_journal_that_begins_with_something_else_is_none_of_this_tool(tmp_path, load_in_stretches, journal_bytes):
    (tmp_path / JOURNAL_NAME).write_bytes(journal_bytes)
    for reader in (load, load_in_stretches):
        with pytest.raises(UsageError, match="does not begin with experiment_started: no journal of this tool"):
            reader(tmp_path)


def test_a_journal_of_one_line_is_loaded(tmp_path, load_in_stretches):
    """The machine stopped right after it."""
    experiment_dir = write(tmp_path / "run", one_replicate()[:1])
    for loaded in (load(experiment_dir), load_in_stretches(experiment_dir)):
        assert (loaded.lines, loaded.torn_bytes, loaded.wall_time) == (1, 0, "2026-01-01T00:00:00.000+00:00")
        assert loaded.history == begin(one_replicate()[0])


@pytest.mark.parametrize("again", [(0, -2, -1), (-1,), (-2,), (-1, -1), (3, 3)])
def test_an_episode_that_comes_again_is_read_line_by_line(tmp_path, load_in_stretches, again):
    """Whether others came between, in the same stretch or in another."""
    events = one_replicate()
    episodes = [event for event in events if isinstance(event, EpisodeRecorded)]
    again = [_taking_longer(event) for event in (episodes[place] for place in again)]
    experiment_dir = write(tmp_path / "run", [*events, *again])
    simple, fast = load(experiment_dir, NEVER), load_in_stretches(experiment_dir)
    assert fast == simple
    for name, run in fast.history.runs.items():
        assert len(run.columns) == len(episodes) // 2
        assert [record.timing.total_s for record in run.curve()] == list(run.columns.of("total_s"))
        assert (77.0 in run.columns.of("total_s")) == any(event.record.run.name == name for event in again)


def _taking_longer(event: EpisodeRecorded) -> EpisodeRecorded:
    """The same episode, of which another worker has sent another record."""
    timing = msgspec.structs.replace(event.record.timing, total_s=77.0)
    return EpisodeRecorded(record=msgspec.structs.replace(event.record, timing=timing))


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
