"""Following a journal yields its events, including those appended later."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.journals.short_journal import EVENTS

from esper_ab.contracts.errors import JournalError
from esper_ab.journal import tail as load_module
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.tail import follow


@given(data=st.data())
def test_following_a_growing_journal_yields_every_event_once(tmp_path_factory, journal_bytes, data):
    """A write may end within a line, and the writer may complete it or take it back and write it again."""
    path = tmp_path_factory.mktemp("journal") / JOURNAL_NAME
    events = []
    path.write_bytes(b"")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(journal_bytes)), max_size=6)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load_module, "_CHUNK_BYTES", data.draw(st.sampled_from([1, 7, 100, 1 << 20])))
        follower = follow(path)
        for cut_byte in [*cuts, len(journal_bytes)]:
            written_bytes = journal_bytes[:cut_byte]
            intact_bytes = written_bytes.rfind(b"\n") + 1
            lines = written_bytes.count(b"\n")
            if data.draw(st.booleans()):  # a reader sees a write that failed half-way and was then taken back
                path.write_bytes(written_bytes[:intact_bytes] + b'{"n":0,"half')
                events.extend(follower)
            path.write_bytes(written_bytes)
            events.extend(follower)
            assert (len(events), follower.lines, follower.intact_bytes) == (lines, lines, intact_bytes)
    assert events == EVENTS
    assert list(follower) == []


def test_damage_is_reported_while_a_journal_is_followed(path, journal_bytes):
    path.write_bytes(journal_bytes[:-40])
    follower = follow(path)
    assert list(follower) == EVENTS[:2]
    path.write_bytes(journal_bytes[:-40] + b"\r" + journal_bytes[-39:])
    with pytest.raises(JournalError, match="line 3"):
        list(follower)
