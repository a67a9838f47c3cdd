"""Whether this machine may have a GPU, without torch, whose import takes seconds."""

from __future__ import annotations

from pathlib import Path

_SIGNS = (
    Path("/proc/driver/nvidia/version"),
    Path("/dev/nvidia0"),
    Path("/dev/nvidiactl"),
    Path("/dev/nvhost-gpu"),  # NVIDIA's small computers
    Path("/dev/nvmap"),
    Path("/dev/dxg"),  # through which Windows lends a GPU to WSL
    Path("/dev/kfd"),  # AMD's
)


def gpu_is_there() -> bool:
    """Whether anything shows a GPU, or its driver."""
    return any(sign.exists() for sign in _SIGNS)
