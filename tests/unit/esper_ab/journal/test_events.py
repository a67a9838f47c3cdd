"""Lines of a journal have fixed bytes, and every change of a byte is detected."""

from datetime import UTC, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.journals.ready_journals import one_replicate
from support.journals.short_journal import EVENTS, fixed_clock

from esper_ab.design.design import Contrast
from esper_ab.journal.events import SCHEMA, EpisodeRecorded, LookTaken
from esper_ab.journal.line import (
    FIRST_PREV,
    Line,
    decode,
    event_of,
    is_episode,
    lost_newline,
    other_writer,
    written,
    wrong_tail,
)

# Every later version with the same schema must read the lines that are on disk today.
FIXED = (
    b'{"n":7,"prev":"00000000","t":"2026-01-31T10:15:00.123+00:00","event":{"kind":"released","replicate":0,'
    b'"milestone":0,"runs":["a/0","b/0"]},"crc":"1536c111"}\n'
)
STAMPS = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-3, minutes=-30))]))
LINES = st.builds(
    written,
    st.integers(0, 1 << 40),
    st.text("0123456789abcdef", min_size=8, max_size=8),
    STAMPS,
    st.sampled_from([*EVENTS, *one_replicate()]),
)


def test_the_bytes_of_a_journal_line_never_change():
    assert written(7, FIRST_PREV, fixed_clock(), EVENTS[0]) == (FIXED, "1536c111")
    assert decode(FIXED) == Line(7, FIRST_PREV, fixed_clock(), EVENTS[0], "1536c111")


@given(LINES)
def test_a_written_line_is_read_back_unchanged(written_line):
    data, crc = written_line
    assert wrong_tail(data) == ""
    assert not lost_newline(data)
    line = decode(data)
    assert line.crc == crc
    assert written(line.n, line.prev, line.t, line.event) == written_line
    assert event_of(data) == line.event
    assert is_episode(data) == isinstance(line.event, EpisodeRecorded)


@given(LINES, st.data())
def test_a_changed_byte_is_detected(written_line, data):
    line = bytearray(written_line[0])
    offset = data.draw(st.integers(0, len(line) - 1))
    line[offset] ^= data.draw(st.integers(1, 255))
    in_tail = len(line) - offset <= len(',"crc":"00000000"}\n')
    in_digits = 3 < len(line) - offset <= 11
    expected = "it does not end with a CRC" if in_tail and not in_digits else "its CRC does not match its contents"
    if not in_digits or line[offset] < 128:
        assert wrong_tail(bytes(line)) == expected
    assert wrong_tail(bytes(line)) != ""
    assert event_of(bytes(line)) is None
    assert lost_newline(bytes(line)) == (offset == len(line) - 1)


def schema_line(schema, **versions):
    return written(0, FIRST_PREV, fixed_clock(), replace(one_replicate()[0], schema=schema, versions=versions))[0]


@pytest.mark.parametrize("schema", [0, SCHEMA - 1, SCHEMA + 1])
def test_the_refusal_of_a_line_with_another_schema_names_its_writer(schema):
    with pytest.raises(msgspec.ValidationError, match=f"its schema is {schema}, not {SCHEMA}"):
        decode(schema_line(schema))
    assert event_of(schema_line(schema)) is None
    assert other_writer(schema_line(schema, esper_ab="9.1")) == "esper_ab 9.1"
    assert other_writer(schema_line(schema)) == "esper_ab of another version"


def test_only_the_header_of_a_foreign_journal_names_its_writer():
    assert {other_writer(line) for line in (schema_line(SCHEMA, esper_ab="9.1"), FIXED, b"no line", b"\xff")} == {""}


@pytest.mark.parametrize(
    ("decided_pairs", "futile_pairs", "text"),
    [
        (("ab", "ac"), ("bc",), "decided a - b, a - c; stopped for futility: b - c"),
        (("ab", "ac"), (), "decided a - b, a - c"),
        ((), ("ab", "bc"), "decided nothing; stopped for futility: a - b, b - c"),
        ((), (), "decided nothing"),
    ],
)
def test_a_look_is_described_in_words(decided_pairs, futile_pairs, text):
    decided_pairs, futile_pairs = (
        tuple(Contrast(a=a, b=b) for a, b in pairs) for pairs in (decided_pairs, futile_pairs)
    )
    assert LookTaken(replicates=6, decided=decided_pairs, leaving=(), futile=futile_pairs).outcome == text
