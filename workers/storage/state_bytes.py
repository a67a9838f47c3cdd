"""Serialises plain containers of arrays and builtins to bytes that cannot execute code. Equal states give equal bytes.

Arrays are written, and restored, as tensors. torch.save is only used to write to memory: if it wrote to a
file on a full disk, it would destroy the existing file and raise RuntimeError.
"""

from __future__ import annotations

import io
import sys
import zipfile
from typing import Any

import numpy as np
import torch

# Pickle encodes empty bytes as this call; with arguments, the call could allocate any amount that a file specifies.
torch.serialization.add_safe_globals([(lambda: b"", "builtins.bytes")])


def to_bytes(state: dict[str, Any]) -> bytes:
    """Return `state` serialised in torch's file format."""
    buffer = io.BytesIO()
    torch.save(_canonical(state), buffer)
    return buffer.getvalue()


def from_bytes(data: bytes) -> dict[str, Any]:
    """Return the state that `to_bytes` serialised, on the CPU; for other bytes, raises one of durable.FOREIGN."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > len(data):  # our files are not compressed
            raise ValueError("it would take more memory than its file size")
    state: dict[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return state


def _canonical(value: Any) -> Any:
    """Return an equal value in which only equal strings are shared.

    Pickle writes an object that it has already seen as a reference. Without this function, the bytes would depend on
    which equal strings and lists happen to be one object, which differs between a new state and a loaded state.
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
