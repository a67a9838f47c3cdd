"""Binary files are refused with their format and a remedy; real writers made the samples."""

import bz2
import gzip
import lzma
import pickle
import shutil
import sqlite3
import zipfile

import numpy as np
import pandas as pd
import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.csv_file import read_csv

FRAME = pd.DataFrame({"group": ["a", "b"], "seed": [0, 0], "outcome": [1.0, 2.0]})


def _sqlite(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (outcome)")


def _excel(path):
    """The members of a workbook, which need no library for Excel."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "")
        archive.writestr("xl/workbook.xml", "")


def _zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("results.csv", "group,seed,outcome")


@pytest.mark.parametrize(
    ("name", "write", "complaint"),
    [
        ("r.parquet", FRAME.to_parquet, "a Parquet file, not a CSV file; write it as CSV with pandas.read_parquet"),
        ("r.feather", FRAME.to_feather, "a Feather file, not a CSV file; write it as CSV with pandas.read_feather"),
        ("r.xlsx", _excel, "an Excel file, not a CSV file; write it as CSV with pandas.read_excel"),
        ("r.csv.gz", lambda path: path.write_bytes(gzip.compress(b"a")), "a gzip file.*`gunzip --keep r.csv.gz`"),
        ("r.csv.bz2", lambda path: path.write_bytes(bz2.compress(b"a")), "a bzip2 file.*`bunzip2 --keep r.csv.bz2`"),
        ("r.csv.xz", lambda path: path.write_bytes(lzma.compress(b"a")), "an xz file.*`unxz --keep r.csv.xz`"),
        ("r.zip", _zip, "a ZIP archive.*`unzip r.zip`"),
        ("r.npz", lambda path: np.savez(path, a=[1.0]), "a NumPy archive, .*write one row per run"),
        ("r.npy", lambda path: np.save(path, [1.0]), "a NumPy file, .*write one row per run"),
        ("r.db", _sqlite, "an SQLite database"),
        ("r.pkl", lambda path: path.write_bytes(pickle.dumps(FRAME)), "a pickle"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("r.") else "",
)
def test_the_refusal_of_a_foreign_binary_file_names_its_format(tmp_path, name, write, complaint):
    path = tmp_path / name
    write(path)
    with pytest.raises(UsageError, match=f"{name} is {complaint}"):
        read_csv(path)


def test_the_suggested_command_reads_the_parquet_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_parquet("r.parquet")
    with pytest.raises(UsageError) as refusal:
        read_csv(tmp_path / "r.parquet")
    eval(str(refusal.value).split("with ")[1], {"pandas": pd})
    assert len(read_csv(tmp_path / "r.csv").rows) == 2


def test_the_suggested_command_unpacks_the_gzip_file(tmp_path):
    assert shutil.which("gunzip")
    (tmp_path / "my runs.csv.gz").write_bytes(gzip.compress(b"a"))
    with pytest.raises(UsageError, match=r"`gunzip --keep 'my runs.csv.gz'`"):
        read_csv(tmp_path / "my runs.csv.gz")


def test_a_damaged_archive_is_recognised_as_an_archive(tmp_path):
    (tmp_path / "r.zip").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(UsageError, match="is a ZIP archive"):
        read_csv(tmp_path / "r.zip")
