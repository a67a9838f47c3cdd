"""Parquet files."""

import duckdb
import numpy as np

from esper_ab.formats.known import read_file


def test_a_parquet_file_is_read_from_a_path_with_glob_characters(tmp_path):
    plain_file = tmp_path / "plain"
    rows = "SELECT * FROM (VALUES ('a', 1, 1.5, true, [1]), (NULL, NULL, NULL, false, [2])) t(text, n, x, ok, list)"
    duckdb.sql(f"COPY ({rows}) TO '{plain_file}' (FORMAT parquet)")
    file = tmp_path / "a[1]*?.parquet"
    plain_file.rename(file)
    (table,) = read_file(file)
    assert table.columns["text"] == ["a", ""]
    assert np.isnan(table.columns["n"][1])
    assert list(table.columns["ok"]) == [True, False]
    assert table.notes == ("Columns with several values in a cell are left out: list.",)
