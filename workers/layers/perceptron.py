"""Two linear layers on pooled features, SiLU between them and a sigmoid behind, forward and backward written out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.layers.blueprint import linear

_aten = torch.ops.aten


@dataclass(frozen=True)
class Layers:
    """Of n networks: first [n,I,r], its bias [n,r] or none, second [n,r,O], its bias [n,O]."""

    first: Tensor
    first_bias: Tensor | None
    second: Tensor
    second_bias: Tensor


@dataclass(frozen=True)
class Passed:
    """What the backward pass needs."""

    layers: Layers
    x: Tensor
    before: Tensor
    hidden: Tensor
    out: Tensor


def forward(x: Tensor, layers: Layers) -> Passed:
    """x [n,B,I] -> `out` [n,B,O] in (0, 1)."""
    before = linear(x, layers.first, layers.first_bias)
    hidden = F.silu(before)
    return Passed(layers, x, before, hidden, linear(hidden, layers.second, layers.second_bias).sigmoid_())


def backward(g: Tensor, passed: Passed, into_input: bool) -> tuple[Tensor | None, Layers]:
    """Gradient of the output -> those of x (None unless asked for) and of the layers."""
    layers = passed.layers
    g = _aten.sigmoid_backward(g, passed.out)
    dhidden = _aten.silu_backward(torch.bmm(g, layers.second.transpose(1, 2)), passed.before)
    grads = Layers(
        torch.bmm(passed.x.transpose(1, 2), dhidden),
        None if layers.first_bias is None else dhidden.sum(1),
        torch.bmm(passed.hidden.transpose(1, 2), g),
        g.sum(1),
    )
    return (torch.bmm(dhidden, layers.first.transpose(1, 2)) if into_input else None), grads
