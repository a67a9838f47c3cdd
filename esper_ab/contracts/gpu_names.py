"""The name of a GPU in CUDA_VISIBLE_DEVICES, which tells a worker which GPU it owns.

MIG splits a GPU into instances. A process can use only the first instance that is named in the variable, and only by
that name, because torch counts the instance as one GPU whose UUID does not identify the instance.
"""

from __future__ import annotations

from collections.abc import Sequence

_INSTANCE = "MIG-"


def gpu_names(uuids: Sequence[str], visible_variable: str | None) -> list[str]:
    """Return the names of the GPUs that torch sees, from their UUIDs and the process's CUDA_VISIBLE_DEVICES."""
    visible_names = _split_names(visible_variable)
    if len(visible_names) == len(uuids) == 1 and visible_names[0].startswith(_INSTANCE):
        return visible_names
    return [f"GPU-{uuid}" for uuid in uuids]


def is_beyond_one_instance(visible_variable: str | None) -> bool:
    """Whether `visible_variable` names a MIG instance together with further devices, which torch would not see."""
    visible_names = _split_names(visible_variable)
    return len(visible_names) > 1 and any(name.startswith(_INSTANCE) for name in visible_names)


def _split_names(visible_variable: str | None) -> list[str]:
    return [name.strip() for name in (visible_variable or "").split(",")]
