"""What a GPU is called in CUDA_VISIBLE_DEVICES, by which a worker is told its own.

MIG cuts a GPU into instances. A process sees one, the first that the variable names, and only by the name there: torch
counts it as one GPU, with a UUID that says nothing of instances.
"""

from __future__ import annotations

from collections.abc import Sequence

_INSTANCE = "MIG-"


def gpu_names(uuids: Sequence[str], visible: str | None) -> list[str]:
    """Return the names of the GPUs that torch sees, from its UUIDs and the process's CUDA_VISIBLE_DEVICES."""
    named = _named(visible)
    if len(named) == len(uuids) == 1 and named[0].startswith(_INSTANCE):
        return named
    return [f"GPU-{uuid}" for uuid in uuids]


def is_beyond_one_instance(visible: str | None) -> bool:
    """Return whether an instance is named beside others, of which a process would see none."""
    named = _named(visible)
    return len(named) > 1 and any(name.startswith(_INSTANCE) for name in named)


def _named(visible: str | None) -> list[str]:
    return [name.strip() for name in (visible or "").split(",")]
