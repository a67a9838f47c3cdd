"""Arrays in .npy files and .npz archives, without pickles, and no larger than the bytes that the file has."""

from __future__ import annotations

import ast
import math
import struct
from pathlib import Path

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.formats.known._archive import ZipArchive

MAGIC = b"\x93NUMPY"
_SUFFIX = ".npy"
_LONGEST_HEADER = 10_000  # as in numpy
_MOST_BYTES = 256 * 2**20


def read_npy(file: Path) -> np.ndarray:
    """Return the array of a .npy file. Raises UsageError if it is damaged or has Python objects."""
    return _parse(str(file), read_regular(file, _MOST_BYTES))


def read_npz(file: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz archive by name. Raises UsageError if one is damaged or has Python objects."""
    archive = ZipArchive(file)
    return {
        name.removesuffix(_SUFFIX): _parse(f"{file}, {name}", archive.read(name))
        for name in archive.names
        if name.endswith(_SUFFIX)
    }


def _parse(origin: str, content: bytes) -> np.ndarray:
    try:
        start, shape, fortran_order, dtype = _header(content)
    except (ValueError, TypeError, LookupError, SyntaxError, MemoryError, RecursionError, struct.error):
        raise UsageError(f"{origin} is a damaged NumPy array: its header cannot be read") from None
    if dtype.hasobject:
        raise UsageError(
            f"{origin} has Python objects (a pickle), which are not loaded because they can run code; save arrays of "
            "numbers, as np.savez(file, **scores) does"
        )
    count = math.prod(shape)
    if count * dtype.itemsize != len(content) - start:
        raise UsageError(f"{origin} is a damaged NumPy array: {len(content)} bytes do not hold the shape {list(shape)}")
    if not count:
        return np.empty(shape, dtype)
    values = np.frombuffer(content, dtype, count, start)
    if fortran_order:
        return values.reshape(shape, order="F")
    return values.reshape(shape)


def _header(content: bytes) -> tuple[int, tuple[int, ...], bool, np.dtype]:
    """Return where the values begin, their shape, whether the first axis varies fastest, and their type."""
    if not content.startswith(MAGIC):
        raise ValueError("no NumPy array")
    version = content[len(MAGIC)]
    length_format = struct.Struct("<I")  # of the header's length
    if version == 1:
        length_format = struct.Struct("<H")
    begin = len(MAGIC) + 2 + length_format.size
    (header_length,) = length_format.unpack(content[begin - length_format.size : begin])
    end = begin + min(header_length, _LONGEST_HEADER)
    header = ast.literal_eval(content[begin:end].decode("latin1").strip())
    shape = header["shape"]
    if not isinstance(shape, tuple) or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError("no shape")
    return end, shape, bool(header["fortran_order"]), np.lib.format.descr_to_dtype(header["descr"])
