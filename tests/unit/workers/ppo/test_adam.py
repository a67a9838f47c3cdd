"""Our Adam against torch's: the same bits, and each goes on from the other's state."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from workers.ppo.adam import Adam

LR, EPS = 0.03, 1e-5
SHAPES = ((3, 5), (5,), (1, 2, 3), ())


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(3)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def give_gradients(owner: list[nn.Parameter], step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for parameter in owner:
        parameter.grad = torch.randn(parameter.shape, generator=generator) * 10.0 ** (step % 5 - 2)


def same(mine: list[nn.Parameter], theirs: list[nn.Parameter]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_every_step_has_the_bits_of_torch_s_fused_adam() -> None:
    mine, theirs = parameters(), parameters()
    adam, reference = Adam(mine, LR, EPS), torch.optim.Adam(theirs, lr=LR, eps=EPS, fused=True)
    for step in range(20):
        for owner, optimiser in ((mine, adam), (theirs, reference)):
            optimiser.zero_grad()
            assert all(parameter.grad is None for parameter in owner)
            give_gradients(owner, step)
            optimiser.step()
        assert same(mine, theirs)


@pytest.mark.parametrize("steps", [0, 7])
def test_it_goes_on_from_its_own_state_and_from_torch_s(steps: int) -> None:
    first, theirs = parameters(), parameters()
    adam, reference = Adam(first, LR, EPS), torch.optim.Adam(theirs, lr=LR, eps=EPS, fused=True)
    for step in range(steps):
        for owner, optimiser in ((first, adam), (theirs, reference)):
            give_gradients(owner, step)
            optimiser.step()
    for state in (adam.state(), copy.deepcopy(reference.state_dict())):
        mine = [nn.Parameter(parameter.detach().clone()) for parameter in first]
        again = Adam(mine, LR, EPS)
        again.load(state)
        give_gradients(mine, steps)
        again.step()
        expected = [nn.Parameter(parameter.detach().clone()) for parameter in theirs]
        beside = torch.optim.Adam(expected, lr=LR, eps=EPS, fused=True)
        beside.load_state_dict(copy.deepcopy(reference.state_dict()))
        give_gradients(expected, steps)
        beside.step()
        assert same(mine, expected)


def test_a_parameter_without_a_gradient_moves_nothing() -> None:
    """The others' gradients are never taken for its own."""
    mine, before = parameters(), parameters()
    give_gradients(mine, 0)
    mine[1].grad = None
    with pytest.raises(AssertionError, match="without a gradient"):
        Adam(mine, LR, EPS).step()
    assert same(mine, before)


def test_a_state_is_a_copy() -> None:
    mine = parameters()
    adam = Adam(mine, LR, EPS)
    give_gradients(mine, 0)
    adam.step()
    state = adam.state()
    before = copy.deepcopy(state)
    other = Adam(parameters(), LR, EPS)
    other.load(state)
    for owner, optimiser in ((mine, adam), (other._parameters, other)):
        give_gradients(owner, 1)
        optimiser.step()
    assert all(torch.equal(state["state"][0][name], before["state"][0][name]) for name in before["state"][0])


def test_a_state_of_other_parameters_is_refused() -> None:
    mine = parameters()
    adam = Adam(mine[:2], LR, EPS)
    give_gradients(mine, 0)
    adam.step()
    with pytest.raises(LookupError, match="2 parameters for 4"):
        Adam(mine, LR, EPS).load(adam.state())
