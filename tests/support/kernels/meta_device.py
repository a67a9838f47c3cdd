"""torch's meta device: tensors of a device that is no CPU, with shapes and layouts and no numbers.

Every operation there knows shapes, types and devices and no value: whatever asks for a value, or for a size that
depends on one, or joins a tensor of another device, fails.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")
_SHAPES = torch.library.Library("aten", "IMPL", "Meta")  # of operations that torch knows no shapes of


def _sgd(values: list[torch.Tensor], *others: list[torch.Tensor], **_rule: object) -> None:
    """CUDA's refuses lists whose tensors do not lie alike, or not densely."""
    for value, *beside in zip(values, *others, strict=True):
        assert value.is_contiguous()
        for one in beside:
            assert (one.device, one.dtype) == (value.device, value.dtype)
            assert (one.shape, one.stride()) == (value.shape, value.stride())


_SHAPES.impl("_fused_sgd_", _sgd)


class Calls(TorchDispatchMode):
    """What is called of torch while this is entered: (name, as in "aten.add_.Tensor"; its tensors)."""

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
    """Bytes of tensors made on the meta device while this is entered: those alive now, and most at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.current = self.peak = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(
        self, function: Callable[..., Any], _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for made in tree_leaves(result):
            if isinstance(made, torch.Tensor) and made.device == META:
                storage = made.untyped_storage()
                if storage._cdata not in self._sizes:
                    self._sizes[storage._cdata] = storage.nbytes()
                    self.current += storage.nbytes()
                    self.peak = max(self.peak, self.current)
                    weakref.finalize(storage, self._freed, storage._cdata)
        return result

    def _freed(self, key: int) -> None:
        self.current -= self._sizes.pop(key)
