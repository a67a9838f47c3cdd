"""Members of ZIP archives (.npz, .eval), which others may have made endless."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import open_to_read, read_regular
from esper_ab.formats.known._zstandard import unpack_text

MAGIC = b"PK\x03\x04"
_MOST_BYTES = 256 * 2**20  # of an archive, and of all that is read from it
_BROKEN = (
    zipfile.BadZipFile,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OSError,
    zlib.error,
    struct.error,
)
_ZSTANDARD = 93  # a method of compression that zipfile reads from Python 3.14 on
_LOCAL_HEADER = struct.Struct("<26xHH")


class ZipArchive:
    """A ZIP archive in memory; what is unpacked of it is counted."""

    def __init__(self, file: Path) -> None:
        """Raises UsageError if it is damaged, and OSError if it cannot be read or is larger than 256 MiB."""
        self.file = file
        self._left = _MOST_BYTES
        self._content = read_regular(file, _MOST_BYTES)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(self._content))
        except _BROKEN as error:
            raise UsageError(f"{file} is a damaged ZIP archive: {error}") from None
        self.names: Collection[str] = tuple(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """Return a member. Raises UsageError if it is damaged, compressed in an unknown way, or too much."""
        if name not in self.names:
            raise UsageError(f"{self.file}: the archive has no {name}")
        member = self._zip.getinfo(name)
        if member.file_size > self._left:
            raise UsageError(f"{self.file}: {name} and what comes before it unpack to over {_MOST_BYTES >> 20} MiB")
        self._left -= member.file_size
        try:
            if member.compress_type == _ZSTANDARD:
                return unpack_text(f"{self.file}, {name}", self._packed(member), member.file_size)
            return self._zip.read(member)
        except _BROKEN as error:
            raise UsageError(f"{self.file}: {name} is damaged: {error}") from None

    def _packed(self, member: zipfile.ZipInfo) -> bytes:
        """Return a member as it is in the archive, after a header and two fields whose lengths the header has."""
        start = member.header_offset + _LOCAL_HEADER.size
        lengths = _LOCAL_HEADER.unpack(self._content[member.header_offset : start])[-2:]
        return self._content[start + sum(lengths) :][: member.compress_size]


def names_in(file: Path, head: bytes) -> Collection[str]:
    """Return the names of the members; () if the file, which begins with `head`, is no archive."""
    if not head.startswith(MAGIC):
        return ()
    try:
        with open_to_read(file) as opened_file:
            return tuple(zipfile.ZipFile(opened_file).namelist())
    except _BROKEN:
        return ()
