import os

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.external.csv_file import read_csv


@pytest.mark.parametrize(("content", "said"), [
    ("", "empty: it needs a header line"),
    ("group,seed,outcome\n", "has no rows"),
    ("group;seed;outcome\na;0;1\n", "row 1: its columns are separated by semicolons"),
    ("group,seed,outcome\na,0,1\nb,0\n", "row 3, column outcome: the row has 2 cells, the header 3"),
    ("group,seed,outcome\na,0,1,2\n", "row 2, after column outcome: the row has 4 cells"),
    ("group,seed,seed,outcome\na,0,0,1\n", "row 1, column 3: a second column is called 'seed'"),
    ('group,seed,outcome\na,0,"1\n', "row 2: no CSV"),
    (",".join(map(str, range(100_000))), "row 1: 100000 columns, where a row per run has at most 1000"),
    ("group,seed,outcome\na,0,1\n\nb,0,one\n", "row 4, column outcome: 'one'"),
])  # fmt: skip
def test_what_is_no_table_of_outcomes_is_refused_in_one_line(tmp_path, content, said):
    file = tmp_path / "f.csv"
    file.write_text(content)
    with pytest.raises(UsageError) as raised:
        read_csv(file)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_other_bytes_are_refused_with_their_row(tmp_path):
    file = tmp_path / "f.csv"
    file.write_bytes(b"group,seed,outcome\na,0,\xff\n")
    with pytest.raises(UsageError, match="row 2: byte 23 is no UTF-8"):
        read_csv(file)


def test_a_byte_order_mark_and_blank_lines_are_no_matter(tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("group, seed ,outcome\r\na,0,1\r\n\r\nb,0, 2 \r\n", encoding="utf-8-sig")
    assert [(row.group, row.value, row.row) for row in read_csv(file).rows] == [("a", 1.0, 2), ("b", 2.0, 4)]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("inside", ["\u2028", "\x85", "\x0c", "\x1d"])
def test_only_ends_of_lines_end_a_row(tmp_path, inside, ends):
    file = tmp_path / "f.csv"
    text = f'group,note,seed,outcome\na,one{inside}two,0,1\nb,"three\nfour",0,2\nc,,0,x\n'
    file.write_bytes(text.replace("\n", ends).encode())
    with pytest.raises(UsageError, match="row 5, column outcome: 'x'"):
        read_csv(file)
    file.write_bytes(text.replace("x", "3").replace("\n", ends).encode())
    assert [(row.group, row.value, row.row) for row in read_csv(file).rows] == [
        ("a", 1.0, 2), ("b", 2.0, 4), ("c", 3.0, 5),
    ]  # fmt: skip


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        read_csv(tmp_path / "pipe")


def test_a_link_to_itself_cannot_be_read_and_another_can(tmp_path):
    (tmp_path / "itself").symlink_to("itself")
    with pytest.raises(OSError, match="symbolic links"):
        read_csv(tmp_path / "itself")
    (tmp_path / "f.csv").write_text("group,seed,outcome\na,0,1\n")
    (tmp_path / "link").symlink_to("f.csv")
    assert len(read_csv(tmp_path / "link").rows) == 1


@pytest.mark.parametrize("text", ['{"a": 1.0, "a": 1.0}', ' [1]\n', '{"a": "b"}\n{"a": "c"}\n'])
def test_json_is_called_json(tmp_path, text):
    (tmp_path / "x").write_text(text)
    with pytest.raises(UsageError, match="x is JSON; a CSV file is meant"):
        read_csv(tmp_path / "x")
