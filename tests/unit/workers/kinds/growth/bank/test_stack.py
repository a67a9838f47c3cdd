"""Parameters borrowed from a stack for an epoch, and joint updates against separate updates."""

import pytest
import torch
from support.worlds.tensor_world import env_path, random

from workers.kinds.growth.bank.stack import SGD, Borrowed, Optimiser, Places, Stack, births, put_rows
from workers.kinds.growth.layers import device as _device
from workers.kinds.growth.layers.blueprint import ParamSpec

SPECS = (ParamSpec("kernel", (2, 3, 3, 3), 0.5), ParamSpec("gain", (2,), center=1.0), ParamSpec("gate", (5,), 0.5))
ROWS = torch.tensor([3, 0])


def stack(dtype: torch.dtype = torch.float64) -> Stack:
    new_stack = Stack(SPECS, 4, torch.device("cpu"), dtype)
    births([(new_stack, slice(None), (env_path(1) / "stack").generator().random((4, new_stack.width)))])
    new_stack.momentum += 0.1
    return new_stack


def loans(dtype: torch.dtype) -> list[Borrowed]:
    """All rows trained, some, none idle, one row, another architecture."""
    other_stack = Stack(SPECS[1:], 2, torch.device("cpu"), dtype)
    return [
        stack(dtype).borrow(ROWS, None),
        stack(dtype).borrow(ROWS, torch.tensor([False, True]), idle=5),
        stack(dtype).borrow(ROWS[:1], None),
        other_stack.borrow(torch.arange(2), None),
    ]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_updating_loans_together_equals_updating_them_one_by_one(
    dtype: torch.dtype, tolerance: float, weight_decay: float, momentum: float
) -> None:
    """Rows that are clipped and rows that are not; one whose gradient is not finite stays alone."""
    rule = SGD(lr=0.1, momentum=momentum, weight_decay=weight_decay, max_grad_norm=1.0)
    separate_loans = loans(dtype)
    updated_together = loans(dtype)
    optimiser = Optimiser(updated_together, rule)
    generator = torch.Generator().manual_seed(3)
    for step in range(3):
        size = (0.01, 3.0)[step % 2]
        grads = [torch.randn(loan.flat.shape, generator=generator, dtype=dtype) * size for loan in separate_loans]
        grads[0][1, 55] = float("inf") if step == 1 else 1.0
        for loan, grad in zip(separate_loans, grads, strict=True):
            loan.step(grad.clone(), rule)
        optimiser.step(grads)
    for joint_loan, separate_loan in zip(updated_together, separate_loans, strict=True):
        assert torch.allclose(joint_loan.flat, separate_loan.flat, atol=tolerance, rtol=tolerance, equal_nan=True)
        if momentum:  # else nobody reads it
            assert torch.allclose(
                joint_loan.momentum, separate_loan.momentum, atol=tolerance, rtol=tolerance, equal_nan=True
            )
    assert not torch.equal(updated_together[0].flat[0], loans(dtype)[0].flat[0])


def test_a_loan_is_updated_as_by_torch_sgd() -> None:
    rule = SGD(lr=0.1, momentum=0.9, weight_decay=0.3, max_grad_norm=1.0)
    loan = stack().borrow(torch.arange(4), None)
    loan.momentum.zero_()
    rows = [torch.nn.Parameter(row.clone()) for row in loan.flat.detach()]
    sgd_optimisers = [torch.optim.SGD([row], lr=0.1, momentum=0.9, weight_decay=0.3) for row in rows]
    for step in range(3):
        grad = random(*loan.flat.shape, rng_seed=step) * 10.0 ** (step - 2)
        for row, row_grad, optimiser in zip(rows, grad, sgd_optimisers, strict=True):
            row.grad = row_grad.clone()
            torch.nn.utils.clip_grad_norm_([row], 1.0)
            optimiser.step()
        loan.step(grad, rule)
    torch.testing.assert_close(loan.flat.detach(), torch.stack(list(rows)).detach())


@pytest.mark.parametrize("idle_parameters", [0, 5, 7])
def test_idle_parameters_of_a_stack_are_not_updated(idle_parameters: int) -> None:
    """The last parameters: a gate that nobody looks through."""
    stack_of_rows = stack()
    values = stack_of_rows.values.clone()
    momentum = stack_of_rows.momentum.clone()
    loan = stack_of_rows.borrow(ROWS, None, idle_parameters)
    assert list(loan.params()) == [spec.name for spec in SPECS][: {0: 3, 5: 2, 7: 1}[idle_parameters]]
    assert torch.equal(loan.params()["kernel"].flatten(1), values[ROWS, :54])
    with torch.no_grad():
        loan.flat += 1.0
    loan.momentum += 2.0
    stack_of_rows.give_back(ROWS, loan)
    used_mask = torch.zeros(4, stack_of_rows.width, dtype=torch.bool)
    used_mask[:, : stack_of_rows.width - idle_parameters] = True
    used_mask[[1, 2]] = False
    assert torch.equal(stack_of_rows.values, torch.where(used_mask, values + 1.0, values))
    assert torch.equal(stack_of_rows.momentum, torch.where(used_mask, momentum + 2.0, momentum))


@pytest.mark.parametrize("on_cpu", [True, False])
@pytest.mark.parametrize("rows", [[3, 0], [1], [2, 3, 0, 1]])
def test_picking_and_putting_rows_equals_indexing(
    rows: list[int], on_cpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_device, "is_cpu", lambda _device: on_cpu)
    whole = random(4, 3)
    written_rows = random(len(rows), 3, rng_seed=1)
    expected = whole.clone()
    expected[rows] = written_rows
    put_rows(torch.tensor(rows), [(whole, written_rows)])
    assert torch.equal(whole, expected)
    x = random(2, 2, 2, 4, 3).requires_grad_()
    row_places = Places.of(torch.tensor(rows), 4)
    assert torch.equal(row_places.pick(x), x[:, :, :, rows])
    g = random(2, 2, 2, len(rows), 3, rng_seed=1)
    (grad,) = torch.autograd.grad(row_places.pick(x), x, g)
    (expected_grad,) = torch.autograd.grad(x[:, :, :, rows], x, g)
    assert torch.equal(grad, expected_grad)
    part = random(2, 2, 2, len(rows), 3, rng_seed=2).requires_grad_()
    g = random(2, 2, 2, 4, 3, rng_seed=3)
    expected = torch.zeros_like(g)
    expected[:, :, :, rows] = part.detach()
    assert torch.equal(row_places.put(part), expected)
    assert torch.equal(torch.autograd.grad(row_places.put(part), part, g)[0], g[:, :, :, rows])


def test_putting_an_infinite_row_leaves_other_rows_at_zero() -> None:
    part = torch.full((1, 1, 1, 1, 2), torch.inf)
    put_part = Places.of(torch.tensor([1]), 3).put(part)
    assert torch.equal(put_part[0, 0, 0], torch.tensor([[0.0, 0.0], [torch.inf, torch.inf], [0.0, 0.0]]))
