"""Format of one journal line, for writers and readers: numbered, chained, with its CRC inside the JSON object."""

from datetime import UTC, datetime

from esper_ab.journal.line import (
    stamp_text,
)


def test_time_stamps_have_milliseconds():
    assert stamp_text(datetime(2026, 1, 31, 10, 15, tzinfo=UTC)) == "2026-01-31T10:15:00.000+00:00"
    assert stamp_text(datetime(2026, 1, 31, 10, 15, 0, 999_999, tzinfo=UTC)) == "2026-01-31T10:15:00.999+00:00"
