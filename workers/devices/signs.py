"""Whether this machine may have a GPU, without torch, whose import takes seconds."""

from __future__ import annotations

from pathlib import Path

_SIGNS = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidia0"), Path("/dev/nvidiactl"), Path("/dev/dxg"))


def gpu_is_there() -> bool:
    """Whether anything shows an NVIDIA GPU, or its driver; under WSL, the device through which Windows lends one."""
    return any(sign.exists() for sign in _SIGNS)
