"""A CSV file of outcomes: a header line, then one row per run."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.csv_file import read_csv


def test_a_byte_order_mark_and_blank_lines_are_ignored(tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("group, seed ,outcome\r\na,0,1\r\n\r\nb,0, 2 \r\n", encoding="utf-8-sig")
    assert [(row.group, row.value, row.row) for row in read_csv(file).rows] == [("a", 1.0, 2), ("b", 2.0, 4)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("character", ["\u2028", "\x85", "\x0c", "\x1d"])
def test_a_row_ends_only_at_a_line_end(tmp_path, character, line_end):
    file = tmp_path / "f.csv"
    text = f'group,note,seed,outcome\na,one{character}two,0,1\nb,"three\nfour",0,2\nc,,0,x\n'
    file.write_bytes(text.replace("\n", line_end).encode())
    with pytest.raises(UsageError, match=r"row 5, column outcome: .* not 'x'"):
        read_csv(file)
    file.write_bytes(text.replace("x", "3").replace("\n", line_end).encode())
    assert [(row.group, row.value, row.row) for row in read_csv(file).rows] == [
        ("a", 1.0, 2),
        ("b", 2.0, 4),
        ("c", 3.0, 5),
    ]
