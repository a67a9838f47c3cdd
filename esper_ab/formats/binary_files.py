"""Refuse files of outcomes in formats other than CSV: name the format, and say how to write it as CSV. Pure."""

from __future__ import annotations

import shlex
from pathlib import Path

from esper_ab.contracts.errors import UsageError

_ROWS = "write one row per run, with the header group,seed,outcome"
_PANDAS = "write it as CSV with pandas.{}({!r}).to_csv({!r}, index=False)"
_UNPACK = "unpack it first, with {}"

# The first bytes of a file, its format, and the remedy: a function of pandas, a command that unpacks it, or a sentence.
_BY_FIRST_BYTES = (
    (b"PAR1", "a Parquet file", "read_parquet"),
    (b"ARROW1", "a Feather file", "read_feather"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "read_hdf"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel file", "read_excel"),
    (b"\x1f\x8b", "a gzip file", "gunzip --keep"),
    (b"BZh", "a bzip2 file", "bunzip2 --keep"),
    (b"\xfd7zXZ\x00", "an xz file", "unxz --keep"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "unzstd"),
    (b"\x93NUMPY", "a NumPy file", _ROWS),
    (b"SQLite format 3\x00", "an SQLite database", _ROWS),
    (b"\x80\x02", "a pickle", _ROWS),
    (b"\x80\x03", "a pickle", _ROWS),
    (b"\x80\x04", "a pickle", _ROWS),
    (b"\x80\x05", "a pickle", _ROWS),
)
_ZIP = b"PK\x03\x04"


def refuse_binary(file: Path, content: bytes) -> None:
    """Raise UsageError if the first bytes of the file show a format that is not text."""
    if content.startswith(_ZIP):
        raise UsageError(_explain(file, *_zip_format(content)))
    for first_bytes, kind, remedy in _BY_FIRST_BYTES:
        if content.startswith(first_bytes):
            raise UsageError(_explain(file, kind, remedy))


def _zip_format(content: bytes) -> tuple[str, str]:
    """Return the format of a ZIP archive, and the remedy, from the names of its members."""
    if b"xl/workbook" in content:  # names of members are not compressed
        return "an Excel file", "read_excel"
    if b".npyPK" in content:
        return "a NumPy archive", _ROWS
    return "a ZIP archive", "unzip"


def _explain(file: Path, kind: str, remedy: str) -> str:
    if remedy.startswith("read_"):
        conversion_words = _PANDAS.format(remedy, file.name, f"{file.stem}.csv")
    elif remedy == _ROWS:
        conversion_words = _ROWS
    else:
        conversion_words = _UNPACK.format(f"`{shlex.join([*remedy.split(), file.name])}`")
    return f"{file} is {kind}, not a CSV file; {conversion_words}"
