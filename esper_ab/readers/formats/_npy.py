"""Arrays in .npy files and .npz archives, without pickles, and no larger than the bytes that the file has."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.readers.formats._archive import ZipArchive

MAGIC = b"\x93NUMPY"
_SUFFIX = ".npy"
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


def _parse(where: str, content: bytes) -> np.ndarray:
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read_header = np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read_header(stream)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise UsageError(f"{where} is a damaged NumPy array: {str(error).splitlines()[0][:100]}") from None
    if dtype.hasobject:
        raise UsageError(
            f"{where} has Python objects (a pickle), which are not loaded because they can run code; save arrays of "
            "numbers, as np.savez(file, **scores) does"
        )
    count = math.prod(shape)
    if count * dtype.itemsize != len(content) - stream.tell():
        raise UsageError(f"{where} is a damaged NumPy array: {len(content)} bytes do not hold the shape {shape}")
    values = np.frombuffer(content, dtype, count, stream.tell())
    return values.reshape(shape, order="F" if fortran_order else "C")
