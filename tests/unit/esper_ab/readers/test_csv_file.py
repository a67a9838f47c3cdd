"""A CSV file of outcomes: a header line, then one row per run."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.csv_table import read_table
from esper_ab.readers.csv_file import read_csv


def test_a_byte_order_mark_and_blank_lines_are_ignored(tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("group, seed ,outcome\r\na,0,1\r\n\r\nb,0, 2 \r\n", encoding="utf-8-sig")
    assert [(row.group, row.value, row.row) for row in read_csv(file).rows] == [("a", 1.0, 2), ("b", 2.0, 4)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("character", ["\u2028", "\x85", "\x0c", "\x1d"])
def test_a_csv_row_ends_only_at_a_line_break(tmp_path, character, line_end):
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


@pytest.mark.parametrize(
    "text",
    [
        "group;seed;outcome\na;0;1,5\nb;0;2,25\n",
        "group\tseed\toutcome\na\t0\t1.5\nb\t0\t2.25\n",
        'group,seed,outcome\na,0,"1,5"\nb,0,"2,25"\n',
        "group;seed;outcome\na;0;1,5 %\nb;0;2,25 %\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_separators_and_decimal_signs_of_spreadsheets_are_read(tmp_path, text, encoding):
    file = tmp_path / "f.csv"
    file.write_text(text, encoding=encoding)
    assert [(row.group, row.value) for row in read_csv(file).rows] == [("a", 1.5), ("b", 2.25)]


def test_a_note_shows_the_interpretation_of_decimal_commas(tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("group;seed;outcome\na;0;1,5\n")
    assert read_table(file).notes == ("Column outcome: 1,5 is read as 1.5.",)


def test_row_numbers_continue_across_batches_and_multi_line_cells(tmp_path):
    file = tmp_path / "f.csv"
    lines = [f"{row},{row}" for row in range(2000)]
    lines[1500] = '"15\n00",1500'
    lines[1700] = " , "
    file.write_text("a,b\n" + "\n".join(lines) + "\n")
    table = read_table(file)
    assert len(table.row_numbers) == 1999
    assert (table.columns["a"][1499], table.row_numbers[1499]) == ("1499", 1501)
    assert (table.columns["a"][1500], table.row_numbers[1500]) == ("15\n00", 1503)
    assert (table.columns["a"][-1], table.row_numbers[-1]) == ("1999", 2002)
