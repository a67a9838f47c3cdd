"""Follow a journal that is being written: first the events in it, and later those that are appended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.journals.short_journal import EVENTS

from esper_ab.contracts.errors import JournalError
from esper_ab.journal import tail as load_module
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.tail import follow


@given(data=st.data())
def test_a_followed_journal_is_the_same_however_it_grows(tmp_path_factory, journal_bytes, data):
    """Cut anywhere, also within a line, and completed or taken back and written again, as its writer may."""
    path = tmp_path_factory.mktemp("journal") / JOURNAL_NAME
    seen = []
    path.write_bytes(b"")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(journal_bytes)), max_size=6)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load_module, "_CHUNK_BYTES", data.draw(st.sampled_from([1, 7, 100, 1 << 20])))
        following = follow(path)
        for cut in [*cuts, len(journal_bytes)]:
            there = journal_bytes[:cut]
            intact = there.rfind(b"\n") + 1
            lines = there.count(b"\n")
            if data.draw(st.booleans()):  # a write that failed half-way, seen and then taken back
                path.write_bytes(there[:intact] + b'{"n":0,"half')
                seen.extend(following)
            path.write_bytes(there)
            seen.extend(following)
            assert (len(seen), following.lines, following.intact_bytes) == (lines, lines, intact)
    assert seen == EVENTS
    assert list(following) == []


def test_damage_is_reported_while_following(path, journal_bytes):
    path.write_bytes(journal_bytes[:-40])
    following = follow(path)
    assert list(following) == EVENTS[:2]
    path.write_bytes(journal_bytes[:-40] + b"\r" + journal_bytes[-39:])
    with pytest.raises(JournalError, match="line 3"):
        list(following)
