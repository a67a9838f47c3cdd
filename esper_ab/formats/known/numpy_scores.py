"""`.npz` and `.npy` arrays of scores, a group each, as rliable takes them; or columns of equal length."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import Format
from esper_ab.formats.known._archive import names_in
from esper_ab.formats.known._by_group import are_columns, by_group
from esper_ab.formats.known._npy import MAGIC, read_npy, read_npz
from esper_ab.formats.source_table import Cells, SourceTable

_NAME = "a NumPy file of scores"


def _recognises(file: Path, head: bytes) -> bool:
    return head.startswith(MAGIC) or any(name.endswith(".npy") for name in names_in(file, head))


def _read(file: Path) -> list[SourceTable]:
    with_names = not _is_single(file)
    arrays = read_npz(file) if with_names else {"": read_npy(file)}
    for name, values in list(arrays.items()):
        if values.dtype.names:  # a structured array has columns
            arrays |= {field: values[field] for field in values.dtype.names}
            del arrays[name]
    if not are_columns(arrays):
        return [by_group(file, _NAME, arrays)]
    shapes = {values.shape for values in arrays.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise UsageError(f"{file}, {_NAME}: its columns have different lengths, or more than one dimension")
    columns: dict[str, Cells] = {}
    for name, values in arrays.items():
        columns[name] = values
        if values.dtype.kind in "US":
            columns[name] = values.tolist()
    return [SourceTable(file, _NAME, columns, range(1, next(iter(shapes))[0] + 1))]


def _is_single(file: Path) -> bool:
    return not names_in(file, b"PK\x03\x04")


FORMAT = Format(_NAME, _recognises, _read, general=True)
