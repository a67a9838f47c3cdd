"""A run's records, in memory and in the journal's file: one mapping, whichever of them is where."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.journals import one_replicate, write

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.records import EpisodeRecord
from esper_ab.journal.columns import Episodes
from esper_ab.journal.events import EpisodeRecorded, event_of
from esper_ab.journal.file import JOURNAL_NAME


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("journal") / "run", one_replicate()) / JOURNAL_NAME


def there(journal: Path) -> dict[int, tuple[int, EpisodeRecord]]:
    """The episodes of shaped/0 in the journal: where their lines begin, and what they say."""
    found, at = {}, 0
    for line in journal.read_bytes().splitlines(keepends=True):
        event = event_of(line)
        if isinstance(event, EpisodeRecorded) and event.record.run.name == "shaped/0":
            found[event.record.episode] = at, event.record
        at += len(line)
    return found


def left(journal: Path, episodes: Iterable[int]) -> Episodes:
    into, places = Episodes(), there(journal)
    for episode in episodes:
        into.leave_in(journal, episode, places[episode][0])
    return into


@given(st.sets(st.integers(0, 7)), st.dictionaries(st.integers(-1, 9), st.integers(0, 99)))
def test_records_on_disk_and_in_memory_are_one_mapping(journal, on_disk, in_memory):
    """What is told last counts."""
    places = there(journal)
    record = places[0][1]
    here = {episode: replace(record, digest=f"{digest}") for episode, digest in in_memory.items()}
    episodes = left(journal, on_disk)
    for episode, one in here.items():
        episodes[episode] = one
    wanted = {episode: places[episode][1] for episode in on_disk} | here
    assert dict(episodes) == wanted
    assert len(episodes) == len(wanted)
    assert sorted(episodes) == sorted(wanted)
    for absent in set(range(-2, 11)) - set(wanted):
        assert absent not in episodes
        with pytest.raises(KeyError, match=str(absent)):
            episodes[absent]


def test_a_line_that_was_damaged_meanwhile_is_told_with_its_number(tmp_path, journal):
    path = tmp_path / JOURNAL_NAME
    data, (at, _) = journal.read_bytes(), there(journal)[3]
    path.write_bytes(data)
    episodes = left(path, sorted(there(journal)))
    path.write_bytes(data[: at + 200] + b"\0" + data[at + 201 :])
    number = data[:at].count(b"\n") + 1
    with pytest.raises(JournalError, match=f"line {number}: its CRC does not match its contents"):
        episodes[3]
    assert episodes[2] == there(journal)[2][1]


def test_a_journal_that_was_replaced_meanwhile_is_told(tmp_path, journal):
    """By another one that is intact, where something else stands at the place."""
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(journal.read_bytes())
    episodes = left(path, sorted(there(journal)))
    path.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(JournalError) as told:
        episodes[3]
    assert str(told.value) == f"{path} was changed while it was read: an episode is no longer where it was"
