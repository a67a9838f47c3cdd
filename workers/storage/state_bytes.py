"""Plain containers of arrays and builtins <-> bytes that cannot execute code. Equal states give equal bytes.

Arrays are written, and come back, as tensors.

torch.save writes to memory, never to a file: on a full disk it would destroy the existing file and raise RuntimeError.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
import zipfile
from typing import Any

import msgspec
import numpy as np
import torch

# Exceptions raised by torch.load, or by reading its result, for foreign bytes.
FOREIGN = (
    pickle.UnpicklingError, RuntimeError, LookupError, TypeError, AttributeError, EOFError, ValueError, struct.error,
    zipfile.BadZipFile, MemoryError, msgspec.MsgspecError,
)  # fmt: skip


# The call by which pickle spells empty bytes; with arguments it could allocate whatever a file asks for.
torch.serialization.add_safe_globals([(lambda: b"", "builtins.bytes")])


def to_bytes(state: dict[str, Any]) -> bytes:
    """Serialise `state` in torch's file format."""
    buffer = io.BytesIO()
    torch.save(_canonical(state), buffer)
    return buffer.getvalue()


def from_bytes(data: bytes) -> dict[str, Any]:
    """Restore a state of `to_bytes` on the CPU; raises one of FOREIGN for other bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        if sum(entry.file_size for entry in packed.infolist()) > len(data):  # ours are not compressed
            raise ValueError("it would take more memory than its size")
    state: dict[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return state


def _canonical(value: Any) -> Any:
    """Return an equal value in which nothing is shared but equal strings.

    pickle writes an object that it has seen before as a reference: without this the bytes would depend on which equal
    strings and lists happen to be one object, and that differs between a state just made and one that was loaded.
    """
    if isinstance(value, dict):
        return {_canonical(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_canonical(item) for item in value)
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return sys.intern(value) if isinstance(value, str) else value


def reason(error: Exception) -> str:
    """Describe an error of FOREIGN in at most one line."""
    return " ".join(str(error).split()).partition(". ")[0][:200] or type(error).__name__
