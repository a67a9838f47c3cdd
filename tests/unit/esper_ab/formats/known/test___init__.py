"""Formats are recognised by content; files in unknown formats are refused in one line."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import format_of, read_file


def test_a_file_in_an_unknown_format_is_refused_in_one_line(tmp_path):
    file = tmp_path / "monitor.csv"
    file.write_bytes(b"\x00\x01\x02")
    assert format_of(file) is None
    with pytest.raises(UsageError, match=r"monitor.csv: unknown format$"):
        read_file(file)


def test_the_format_is_recognised_under_any_file_name(tmp_path):
    file = tmp_path / "anything"
    file.write_text('#{"t_start": 1.5}\nr,l,t\n1,2,3\n')
    file_format = format_of(file)
    assert file_format is not None
    assert file_format.name == "an SB3 monitor.csv"
    (table,) = read_file(file, items=True)  # which has no items
    assert list(table.columns["r"]) == [1.0]
