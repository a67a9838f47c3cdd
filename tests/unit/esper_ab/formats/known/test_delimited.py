"""CSV files that no other format recognises."""

import pytest

from esper_ab.formats.known import format_of, read_file


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a;b\n1;2\n", "a\tb\n1\t2\n"])
def test_the_first_line_with_a_separator_is_the_header(tmp_path, text):
    file = tmp_path / "data.txt"
    file.write_text(text)
    (table,) = read_file(file)
    assert (table.format, dict(table.columns)) == ("a CSV file", {"a": ["1"], "b": ["2"]})


@pytest.mark.parametrize("content", [b"one\n2\n", b"\x00,\x01", b'{"a": [1,2]}', b"[1,2]"])
def test_content_without_columns_is_not_read_as_csv(tmp_path, content):
    file = tmp_path / "data.csv"
    file.write_bytes(content)
    file_format = format_of(file)
    assert file_format is None or file_format.name != "a CSV file"
