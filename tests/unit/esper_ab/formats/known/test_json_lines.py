"""Files of JSON lines that no other format recognises."""

from esper_ab.formats.known import read_file


def test_an_incomplete_last_line_of_json_is_left_out(tmp_path):
    file = tmp_path / "metrics.log"
    file.write_text('{"step": 1, "eval": {"return": 1.5}}\n\n{"step": 2, "eval": {"return": NaN}}\n{"step": 3, "ev')
    (table,) = read_file(file)
    assert table.format == "a file of JSON lines"
    assert list(table.columns["step"]) == [1, 2]
    assert (table.columns["eval.return"][0], list(table.row_numbers)) == (1.5, [1, 3])
