"""Rare contents of W&B run files; tests/field/test_files.py reads files written by W&B."""

import struct

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import read_file
from esper_ab.formats.source_table import series_of

START = b":W&B\xe1\xbe\x00"


def text(number: int, content: bytes) -> bytes:
    key = number << 3 | 2
    keys = bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])
    return keys + bytes([len(content)]) + content


def history(*items: tuple[bytes, bytes]) -> bytes:
    message = text(2, b"".join(text(1, text(1, key) + text(16, value)) for key, value in items))
    return struct.pack("<IHB", 0, len(message), 1) + message


def write(folder, *records):
    file = folder / "run-a.wandb"
    file.write_bytes(START + b"".join(records))
    return file


def test_an_offline_wandb_run_without_an_end_has_crashed(tmp_path):
    (table,) = read_file(write(tmp_path, history((b"x", b"1.5"), (b"_step", b"7")), history((b"x", b"NaN"))[:-2]))
    series = series_of(table, "x")
    assert (series.steps.tolist(), series.values.tolist()) == ([7], [1.5])
    assert set(table.column("state")) == {"crashed"}
    assert table.notes == (
        "The last record of run-a.wandb is incomplete.",
        "run-a.wandb has no end: the run crashed, or still goes on.",
    )


def test_a_value_that_is_not_json_is_reported_as_damage(tmp_path):
    with pytest.raises(UsageError, match=r"run-a.wandb, a W&B run file, is damaged: a value is not valid JSON"):
        read_file(write(tmp_path, history((b"x", b"{"))))
