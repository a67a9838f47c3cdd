"""Chains of layers, forward and backward written out: a training step of many small networks is mostly calls.

Gradients of parameters are in the precision of the parameters. test_fused.py holds every blueprint
against autograd's gradients of the plain one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor

from workers.layers.blueprint import Back, Conv, Grads, Inner, Norm, Params, Relu, Towards
from workers.layers.convolution import as_image, by_products, convolve, convolve_backward
from workers.layers.norm import norm_backward, norm_forward

# Gradient of a convolution's output, whether the input's is needed -> the input's and the kernel's.
_ConvBack = Callable[[Tensor, bool], tuple[Tensor | None, Tensor]]
# The same of several, with where their parameters' gradients go.
BackTogether = Callable[[Sequence[Tensor], Sequence[Grads], bool], Sequence[Tensor | None]]
_aten = torch.ops.aten


def run(chain: Sequence[Inner], x: Tensor, p: Params, *, owned: bool = False) -> tuple[Tensor, list[Back]]:
    """chain(x) of x [B,H,W,N,C], and what goes back, first layer first. `owned`: nobody else reads x."""
    tape: list[Back] = []
    for layer in chain:
        match layer:
            case Conv():
                x, back = _conv(layer, x, p)
            case Norm():
                x, back = _norm(layer, x, p)
            case Relu():
                x, back = _relu(x if owned else x.clone())
        owned = True
        tape.append(back)
    return x, tape


def unwind(tape: list[Back], g: Tensor | None, grads: Grads, into_input: bool) -> Tensor | None:
    """Gradient of the input (None unless asked for) from that of the output; those of parameters go into `grads`.

    Of a tape without layers it is `g`.
    """
    found = g
    for index in range(len(tape) - 1, -1, -1):
        found = tape[index](cast(Tensor, found), grads, into_input or index > 0)
    return found


def _relu(x: Tensor) -> tuple[Tensor, Back]:
    y = x.relu_()

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


def towards(layer: Towards, y: Tensor, x: Tensor, p: Params) -> tuple[Tensor, Back]:
    """A part of the way from x to y. Goes back to y; the gradient of x is minus that."""
    away, scale = y - x, torch.tanh(p[layer.name])  # [N,1]
    factor = scale.to(x.dtype).expand(-1, x.shape[4]).contiguous()  # one long inner loop

    def back(g: Tensor, grads: Grads, _needed: bool) -> Tensor:
        moved = (g * away).sum((1, 2), dtype=scale.dtype).sum((0, 2))[:, None]
        grads[layer.name] = moved.mul_(1.0 - scale.square())
        return g * factor

    return away * factor, back


# --- convolutions ---------------------------------------------------------------------------------------------------


def effective(layer: Conv, x: Tensor, p: Params) -> Tensor:
    """The kernel [N,O,I,k,k] in x's precision. Around one pixel is only padding: there a wide one is its centre."""
    weight = p[layer.name]
    k = weight.shape[-1]
    if k > 1 and x.shape[1] == x.shape[2] == 1:
        weight = weight[..., k // 2, k // 2, None, None]
    return weight.to(x.dtype)


def _put(layer: Conv, p: Params, grads: Grads, dkernel: Tensor) -> None:
    """The gradient of `effective` becomes one of the parameter."""
    weight = p[layer.name]
    dkernel = dkernel.to(weight.dtype)
    if dkernel.numel() == weight.numel():
        grads[layer.name] = dkernel.reshape(weight.shape)
    else:
        k = weight.shape[-1]
        grads[layer.name] = weight.new_zeros(weight.shape)
        grads[layer.name][..., k // 2, k // 2] = dkernel.reshape(weight.shape[:-2])


def _conv(layer: Conv, x: Tensor, p: Params) -> tuple[Tensor, Back]:
    y, convolved = _convolution(x, effective(layer, x, p), layer.depthwise)

    def back(g: Tensor, grads: Grads, needed: bool) -> Tensor | None:
        dx, dkernel = convolved(g, needed)
        _put(layer, p, grads, dkernel)
        return dx

    return y, back


def convolve_together(
    layers: Sequence[Conv], xs: Sequence[Tensor], params: Sequence[Params]
) -> tuple[Sequence[Tensor], BackTogether]:
    """Convolutions of one shape as one, each of its own x [B,H,W,n,C]; of several a depthwise one is a whole kernel."""
    if len(layers) == 1:
        y, alone = _conv(layers[0], xs[0], params[0])
        return [y], lambda g, grads, needed: [alone(g[0], grads[0], needed)]
    kernels = [
        _whole(effective(layer, x, p)) if layer.depthwise else effective(layer, x, p)
        for layer, x, p in zip(layers, xs, params, strict=True)
    ]
    counts = [len(kernel) for kernel in kernels]
    y, convolved = _convolution(torch.cat(list(xs), 3), torch.cat(kernels), depthwise=False)

    def back(g: Sequence[Tensor], grads: Sequence[Grads], needed: bool) -> Sequence[Tensor | None]:
        dx, dkernel = convolved(torch.cat(list(g), 3), needed)
        for layer, p, own, part in zip(layers, params, grads, torch.split(dkernel, counts), strict=True):
            _put(layer, p, own, part.diagonal(dim1=1, dim2=2).permute(0, 3, 1, 2) if layer.depthwise else part)
        return [None] * len(counts) if dx is None else torch.split(dx, counts, 3)

    return torch.split(y, counts, 3), back


def _whole(kernel: Tensor) -> Tensor:
    """A depthwise kernel [N,C,1,k,k] as one of all channels [N,C,C,k,k]."""
    n, c, _, k, _ = kernel.shape
    whole = kernel.new_zeros(n, c, c, k, k)
    whole.diagonal(dim1=1, dim2=2).copy_(kernel[:, :, 0].permute(0, 2, 3, 1))
    return whole


def _convolution(x: Tensor, kernel: Tensor, depthwise: bool) -> tuple[Tensor, _ConvBack]:
    """x [B,H,W,n,C] with kernels [n,O,I,k,k], by the way that suits the shape."""
    b, h, w, n, c = x.shape
    out, k = kernel.shape[1], kernel.shape[-1]
    if depthwise and k == 1:
        factor = kernel.reshape(n, c)

        def scaled_back(g: Tensor, needed: bool) -> tuple[Tensor | None, Tensor]:
            return (g * factor if needed else None), (g * x).sum((0, 1, 2))

        return x * factor, scaled_back
    if k == 1 and by_products(b * h * w * n, c, out):
        return _pointwise(x, kernel)
    image, groups = as_image(x), n * c if depthwise else n
    flat = kernel.permute(0, 1, 3, 4, 2).reshape(n * out, k, k, -1).permute(0, 3, 1, 2)
    y = convolve(image, flat, groups)

    def back(g: Tensor, needed: bool) -> tuple[Tensor | None, Tensor]:
        dimage, dkernel = convolve_backward(as_image(g), image, flat, groups, needed)
        dx = None if dimage is None else dimage.permute(0, 2, 3, 1).reshape(b, h, w, n, c)
        return dx, dkernel.view(kernel.shape)

    return y.permute(0, 2, 3, 1).view(b, h, w, n, out), back


def _pointwise(x: Tensor, kernel: Tensor) -> tuple[Tensor, _ConvBack]:
    """A 1x1 convolution with kernel [n,O,C,1,1] as matrix products over the features where they lie, nothing copied."""
    b, h, w, n, c = x.shape
    out = kernel.shape[1]
    rows, weight = _by_network(x), kernel.view(n, out, c)
    y = x.new_empty(b, h, w, n, out)
    torch.bmm(rows, weight.transpose(1, 2), out=_by_network(y))

    def back(g: Tensor, needed: bool) -> tuple[Tensor | None, Tensor]:
        pulled = _by_network(g)
        dkernel = torch.bmm(pulled.transpose(1, 2), rows)
        if not needed:
            return None, dkernel
        dx = g.new_empty(b, h, w, n, c)
        torch.bmm(pulled, weight, out=_by_network(dx))
        return dx, dkernel

    return y, back


def _by_network(x: Tensor) -> Tensor:
    """[B,H,W,n,C] as matrices [n,B*H*W,C]: a view where its pixels are equally far apart."""
    return x.reshape(-1, *x.shape[3:]).transpose(0, 1)
