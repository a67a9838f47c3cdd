"""Written state is restored; other bytes are refused without using more memory than their size."""

import io
import zipfile

import pytest
import torch

from workers.storage.durable import FOREIGN
from workers.storage.state_bytes import from_bytes, to_bytes

STATE = {"empty": b"", "bytes": b"\0x", "nested": {"tuple": (1, 2.5, None, "text")}, "tensor": torch.arange(3.0)}


def _repacked(data: bytes, change) -> bytes:
    """The same archive, whose data.pkl is what `change` makes of it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old_archive, zipfile.ZipFile(buffer, "w") as new_archive:
        for entry in old_archive.infolist():
            content = old_archive.read(entry)
            new_archive.writestr(entry.filename, change(content) if entry.filename.endswith("data.pkl") else content)
    return buffer.getvalue()


def test_a_state_with_empty_bytes_is_restored_unchanged() -> None:
    assert repr(from_bytes(to_bytes(STATE))) == repr(STATE)


# `bytes(10**15)`, in pickle's second protocol.
ALLOCATES = b"\x80\x02cbuiltins\nbytes\n\x8a\x07\x00\x80\xc6\xa4\x7e\x8d\x03\x85R."


def test_truncated_or_foreign_state_bytes_are_refused() -> None:
    data = to_bytes({"empty": b"", "nested": {"tuple": (1, 2.5, None, "text")}})
    pickled_contents = list[bytes]()
    _repacked(data, lambda content: pickled_contents.append(content) or content)
    contents = [ALLOCATES, *(pickled_contents[0][:length] for length in range(len(pickled_contents[0])))]
    repacked_archives = [_repacked(data, lambda _, content=content: content) for content in contents]
    for foreign_bytes in (*repacked_archives, *(data[:length] for length in range(0, len(data), 7))):
        with pytest.raises(FOREIGN):
            from_bytes(foreign_bytes)


def test_a_compressed_state_archive_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as compressed_archive:
        compressed_archive.writestr("archive/data.pkl", b"\0" * (1 << 20))
    with pytest.raises(ValueError, match="more memory than its file size"):
        from_bytes(buffer.getvalue())
