"""Picking rows and putting them back, forward and backward, by a CPU's ways and by a GPU's."""

from __future__ import annotations

import pytest
import torch

from workers.growth.bank.rows import Places, put_rows
from workers.layers import device as _device

ROWS = [[3, 0], [1], [2, 3, 0, 1]]


def random(*shape: int, rng_seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(rng_seed), dtype=torch.float64)


@pytest.mark.parametrize("on_cpu", [True, False])
@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_written_and_no_other(rows: list[int], on_cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device, "is_cpu", lambda _device: on_cpu)
    whole, part = random(4, 3), random(len(rows), 3, rng_seed=1)
    expected = whole.clone()
    expected[rows] = part
    put_rows(torch.tensor(rows), [(whole, part)])
    assert torch.equal(whole, expected)


@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_picked_and_put_and_so_are_their_gradients(rows: list[int]) -> None:
    x = random(2, 2, 2, 4, 3).requires_grad_()
    places = Places.of(torch.tensor(rows), 4)
    assert torch.equal(places.pick(x), x[:, :, :, rows])
    g = random(2, 2, 2, len(rows), 3, rng_seed=1)
    (mine,) = torch.autograd.grad(places.pick(x), x, g)
    (theirs,) = torch.autograd.grad(x[:, :, :, rows], x, g)
    assert torch.equal(mine, theirs)
    part, g = random(2, 2, 2, len(rows), 3, rng_seed=2).requires_grad_(), random(2, 2, 2, 4, 3, rng_seed=3)
    expected = torch.zeros_like(g)
    expected[:, :, :, rows] = part.detach()
    assert torch.equal(places.put(part), expected)
    assert torch.equal(torch.autograd.grad(places.put(part), part, g)[0], g[:, :, :, rows])


def test_what_is_not_finite_elsewhere_is_not_touched() -> None:
    part = torch.full((1, 1, 1, 1, 2), torch.inf)
    found = Places.of(torch.tensor([1]), 3).put(part)
    assert torch.equal(found[0, 0, 0], torch.tensor([[0.0, 0.0], [torch.inf, torch.inf], [0.0, 0.0]]))
