"""torch's meta device: tensors that are not on a CPU and have shapes and layouts, but no values.

An operation fails if it needs a value, a size that depends on one, or a tensor of another device.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")
_SHAPES = torch.library.Library("aten", "IMPL", "Meta")  # shape functions that torch lacks


def _sgd(values: list[torch.Tensor], *other_lists: list[torch.Tensor], **_rule: object) -> None:
    """Check, as CUDA's kernel does, that the tensors of all lists are dense and have the same layout."""
    for value, *companions in zip(values, *other_lists, strict=True):
        assert value.is_contiguous()
        for companion in companions:
            assert (companion.device, companion.dtype) == (value.device, value.dtype)
            assert (companion.shape, companion.stride()) == (value.shape, value.stride())


_SHAPES.impl("_fused_sgd_", _sgd)


class Calls(TorchDispatchMode):
    """Record the torch calls inside this context as (name, tensors); a name is like "aten.add_.Tensor"."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[str, tuple[torch.Tensor, ...]]] = []

    def __torch_dispatch__(
        self, function: Callable[..., Any], _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        tensors = tuple(value for value in args if isinstance(value, torch.Tensor))
        self.entries.append((str(function), tensors))
        return function(*args, **(kwargs or {}))


class LiveBytes(TorchDispatchMode):
    """Count the bytes of tensors made on the meta device inside this context: `current`, and `peak` at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.current = self.peak = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(
        self, function: Callable[..., Any], _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.device == META:
                storage = tensor.untyped_storage()
                if storage._cdata not in self._sizes:
                    self._sizes[storage._cdata] = storage.nbytes()
                    self.current += storage.nbytes()
                    self.peak = max(self.peak, self.current)
                    weakref.finalize(storage, self._freed, storage._cdata)
        return result

    def _freed(self, key: int) -> None:
        self.current -= self._sizes.pop(key)
