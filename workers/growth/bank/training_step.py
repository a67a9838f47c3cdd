"""One training step of all hosts and their seeds, forward and backward as a chain of written-out parts."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from workers.datasets.task import HostSpec
from workers.growth.bank.fused import BlockParams, Kept, level_backward, level_forward
from workers.growth.bank.host import BatchStatistics
from workers.growth.bank.slot_step import SlotStep
from workers.layers import device as _device
from workers.layers.blueprint import Grads, Params, pooled
from workers.layers.convolution import as_image

Pick = Callable[[slice], Tensor]  # hosts -> their images of the batch side by side, [B,n*C,H,W] channels last


_LARGE = 1 << 14  # numbers that one host reads in a step, from which a call for each host pays on a CPU


def side_by_side(images: Tensor, batch: Tensor) -> Tensor:
    """Images [N,H,W,C] by the indices [n,B] of n hosts -> [B,n*C,H,W], channels last."""
    n, b = batch.shape
    _, h, w, c = images.shape
    flat = images.view(-1, h * w * c)
    if n > 1 and _device.is_cpu(images.device) and b * h * w * c >= _LARGE:
        y = images.new_empty(b, h * w, n, c)
        for host in range(n):
            y[:, :, host] = flat.index_select(0, batch[host]).view(b, h * w, c)
    else:
        y = flat.index_select(0, batch.T.reshape(-1)).view(b, n, h * w, c).transpose(1, 2).contiguous()
    return y.view(b, h, w, n * c).permute(0, 3, 1, 2)


class LevelStep:
    """One level: hosts in pieces whose widest activation fits the cache, side by side within a piece."""

    def __init__(self, p: Params, level: int, spec: HostSpec, statistics: BatchStatistics, at_once: int) -> None:
        weight, gain, bias = (p[f"{level}.{name}"].detach() for name in ("conv", "bn.gain", "bn.bias"))
        whole = BlockParams(weight, gain, bias, statistics.mean, statistics.var, level < spec.pools)
        self._names = [f"{level}.{name}" for name in ("conv", "bn.gain", "bn.bias")]
        self._rows = [slice(at, min(at + at_once, len(gain))) for at in range(0, len(gain), at_once)]
        self._parts = [whole.part(rows) for rows in self._rows]
        self._first = level == 0  # its image is data
        self._kept: list[Kept] = []

    def forward(self, pick: Pick) -> Tensor:
        """-> [B,H',W',n,O]."""
        found = [
            level_forward(pick(rows), part, self._first) for rows, part in zip(self._rows, self._parts, strict=True)
        ]
        self._kept = [kept for _, kept in found]
        return found[0][0] if len(found) == 1 else torch.cat([z for z, _ in found], 3)

    def backward(self, g: Tensor, grads: Grads, into_image: bool) -> Tensor | None:
        """Gradient of the output -> that of the input, None unless asked for; of the parameters into `grads`."""
        found = [
            level_backward(g[:, :, :, rows], kept, part.gain, into_image)
            for rows, part, kept in zip(self._rows, self._parts, self._kept, strict=True)
        ]
        self._kept = []
        for index, name in enumerate(self._names):
            pieces = [own[index] for _, own in found]
            grads[name] = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
        images = [dx for dx, _ in found if dx is not None]
        if not images:
            return None
        return images[0] if len(images) == 1 else torch.cat(images, 3)


def _beside(h: Tensor) -> Pick:
    """Hosts' images from their features [B,H,W,N,C]."""
    return lambda rows: as_image(h[:, :, :, rows])


class TrainingStep:
    """Hosts and seeds during one epoch; `slots` by level."""

    def __init__(self, p: Params, levels: list[LevelStep], slots: dict[int, SlotStep]) -> None:
        self._levels, self._slots = levels, slots
        self._weight, self._bias = p["head.weight"].detach(), p["head.bias"].detach()

    @torch.no_grad()
    def forward(self, pick: Pick) -> Tensor:
        """-> logits [n,classes,B]: softmax over neighbours in memory costs a loop per sample."""
        h = self._levels[0].forward(pick)
        for level, step in enumerate(self._levels):
            if level > 0:
                h = step.forward(_beside(h))
            if level in self._slots:
                h = self._slots[level].forward(h)
        self._shape, self._precision = h.shape, h.dtype
        self._pooled = pooled(h)
        return torch.baddbmm(self._bias[:, :, None], self._weight.transpose(1, 2), self._pooled.transpose(1, 2))

    @torch.no_grad()
    def backward(self, error: Tensor) -> Grads:
        """Gradients of the hosts, by name, from those of the logits [n,classes,B]; the seeds' go into their members."""
        grads: Grads = {}
        grads["head.weight"] = torch.bmm(error, self._pooled).transpose(1, 2)
        grads["head.bias"] = error.sum(2)
        b, h, w, n, c = self._shape
        mean = torch.bmm(error.transpose(1, 2), self._weight.transpose(1, 2)).div_(h * w).transpose(0, 1)  # [B,n,C]
        g = mean.to(self._precision).contiguous()[:, None, None].expand(b, h, w, n, c).contiguous()
        for level in range(len(self._levels) - 1, -1, -1):
            if level in self._slots:
                g = self._slots[level].backward(g)
            found = self._levels[level].backward(g, grads, into_image=level > 0)
            g = g if found is None else found
        return grads
