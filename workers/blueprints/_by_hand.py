"""Chains of layers, forward and backward written out: a training step of many small networks is mostly calls.

Gradients of parameters are in the precision of the parameters. tests/tensor/test_by_hand.py holds every layer against
autograd's on the plain one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from workers.blueprints._blueprint import Back, Conv, Grads, Layer, Norm, Params, Relu
from workers.blueprints._convolution import as_image, by_products, convolve, convolve_backward
from workers.blueprints._norm import norm_backward, norm_forward

_aten = torch.ops.aten


def run(chain: tuple[Layer, ...], x: Tensor, p: Params) -> tuple[Tensor, list[Back]]:
    """chain(x) of x [B,H,W,N,C], and what goes back, first layer first."""
    tape: list[Back] = []
    for index, layer in enumerate(chain):
        match layer:
            case Conv():
                x, back = _conv(layer, x, p)
            case Norm():
                x, back = _norm(layer, x, p)
            case Relu():
                x, back = _relu(x if index else x.clone())
        tape.append(back)
    return x, tape


def unwind(tape: list[Back], g: Tensor, grads: Grads, into_input: bool) -> Tensor | None:
    """Gradient of the input (None unless asked for) from that of the output; those of parameters go into `grads`."""
    found: Tensor | None = g
    for index in range(len(tape) - 1, -1, -1):
        found = tape[index](cast(Tensor, found), grads, into_input or index > 0)
    return found


def _relu(x: Tensor) -> tuple[Tensor, Back]:
    y = x.relu_()  # of a layer's output, which nobody else reads

    def back(g: Tensor, _grads: Grads, _needed: bool) -> Tensor:
        return cast(Tensor, _aten.threshold_backward(g, y, 0))

    return y, back


def _norm(layer: Norm, x: Tensor, p: Params) -> tuple[Tensor, Back]:
    gain, bias = f"{layer.prefix}.gain", f"{layer.prefix}.bias"
    y, saved = norm_forward(x, p[gain], p[bias])

    def back(g: Tensor, grads: Grads, _needed: bool) -> Tensor:
        dx, grads[gain], grads[bias] = norm_backward(g, saved)
        return dx

    return y, back


def _conv(layer: Conv, x: Tensor, p: Params) -> tuple[Tensor, Back]:
    """Around a single pixel there is only padding: a wide kernel is its centre."""
    weight = p[layer.name]
    b, h, w, n, c = x.shape
    whole, k = weight.shape, weight.shape[-1]
    single = k > 1 and h == w == 1
    kernel = (weight[..., k // 2, k // 2, None, None] if single else weight).to(x.dtype)

    def put(grads: Grads, dkernel: Tensor) -> None:
        dkernel = dkernel.to(weight.dtype)
        if single:
            grads[layer.name] = weight.new_zeros(whole)
            grads[layer.name][..., k // 2, k // 2] = dkernel.view(whole[:-2])
        else:
            grads[layer.name] = dkernel.view(whole)

    if layer.depthwise and (single or k == 1):
        factor = kernel.reshape(n, c)

        def scaled_back(g: Tensor, grads: Grads, needed: bool) -> Tensor | None:
            put(grads, (g * x).sum((0, 1, 2)))
            return g * factor if needed else None

        return x * factor, scaled_back
    if k == 1 and not layer.depthwise and by_products(b * h * w * n, c, whole[1]):
        return _pointwise(x, kernel, put)
    image, groups = as_image(x), n * c if layer.depthwise else n
    kernel = kernel.permute(0, 1, 3, 4, 2).reshape(n * whole[1], *kernel.shape[3:], -1).permute(0, 3, 1, 2)
    y = convolve(image, kernel, groups)

    def back(g: Tensor, grads: Grads, needed: bool) -> Tensor | None:
        dimage, dkernel = convolve_backward(as_image(g), image, kernel, groups, needed)
        put(grads, dkernel)
        return None if dimage is None else dimage.permute(0, 2, 3, 1).reshape(b, h, w, n, c)

    return y.permute(0, 2, 3, 1).view(b, h, w, n, whole[1]), back


def _pointwise(x: Tensor, kernel: Tensor, put: Callable[[Grads, Tensor], None]) -> tuple[Tensor, Back]:
    """A 1x1 convolution with kernel [n,O,C,1,1] as matrix products over the features where they lie, nothing copied."""
    b, h, w, n, c = x.shape
    out = kernel.shape[1]
    rows, weight = _by_network(x), kernel.view(n, out, c)
    y = x.new_empty(b, h, w, n, out)
    torch.bmm(rows, weight.transpose(1, 2), out=_by_network(y))

    def back(g: Tensor, grads: Grads, needed: bool) -> Tensor | None:
        pulled = _by_network(g)
        put(grads, torch.bmm(pulled.transpose(1, 2), rows))
        if not needed:
            return None
        dx = g.new_empty(b, h, w, n, c)
        torch.bmm(pulled, weight, out=_by_network(dx))
        return dx

    return y, back


def _by_network(x: Tensor) -> Tensor:
    """[B,H,W,n,C] as matrices [n,B*H*W,C]: a view where its pixels are equally far apart."""
    return x.reshape(-1, *x.shape[3:]).transpose(0, 1)
