"""Counts, without a GPU, the kernels that a training step launches off the CPU, by torch's calls on the meta device.

A call counts unless it only makes a view or allocates memory; a call over a list of tensors counts once per tensor.
Kernels launched inside a call are not counted: group norms and some reductions are two or three GPU kernels.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from support.kernels.meta_device import META
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.worlds import Case, build

_MEMORY = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "detach", "_unsafe_view")


class Kernels(TorchDispatchMode):
    """Counts calls by name while entered."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(
        self, function: Callable[..., Any], _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function._schema.name.removeprefix("aten::")
        tensors = [leaf for leaf in tree_leaves((args, result)) if isinstance(leaf, torch.Tensor)]
        if not function.is_view and name not in _MEMORY and any(tensor.device == META for tensor in tensors):
            self.counts[name] += len(args[0]) if name.startswith("_foreach") else 1
        return result


def per_minibatch(case: Case) -> Counter[str]:
    """Return the kernels, by name, of one additional minibatch of an epoch."""
    counts = []
    for batches in (2, 3):
        world = build(replace(case, batches=batches), device="meta")
        kernels = Kernels()
        with kernels:
            world.bank._train_rows(world.table, np.arange(case.n_envs), world.split, world.order)
        counts.append(kernels.counts)
    return counts[1] - counts[0]
