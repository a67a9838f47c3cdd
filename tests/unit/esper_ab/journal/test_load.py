"""Loading and following a journal: its records stay in the file."""

from __future__ import annotations

import pytest
from support.journals import failed_run, one_replicate, records_of, three_groups, write
from support.short_journal import EVENTS

from esper_ab.contracts.errors import JournalError
from esper_ab.journal import load as load_module
from esper_ab.journal.columns import NAMES
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.fold import fold
from esper_ab.journal.load import follow, load


@pytest.mark.parametrize("events", [one_replicate, three_groups, failed_run])
def test_what_is_loaded_is_the_fold_of_the_events_and_its_records_are_in_the_file(tmp_path, events):
    loaded, folded = load(write(tmp_path / "run", events())), fold(events())
    assert (loaded.lines, loaded.torn_bytes) == (len(events()), 0)
    assert loaded.history == folded
    for name, run in folded.runs.items():
        columns = loaded.history.runs[name].columns
        assert (columns.digests, columns.heads) == (run.columns.digests, run.columns.heads)
        for number in NAMES:
            assert columns.of(number).tobytes() == run.columns.of(number).tobytes()
        assert records_of(loaded.history.runs[name]) == records_of(run)


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
