"""The kernel against torch, for any topology, stage and batch."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch
from support.kernels.compiler import IN_CI
from support.kernels.kernel_cases import STAGES, Case, all_tensors, case, compared, drawn, equal_to_the_bit
from support.worlds.tensor_world import ENVS, crowded, orders

from workers.kinds.growth.bank.bank import Bank
from workers.kinds.growth.bank.native import _Rows
from workers.kinds.growth.datasets.task import HostSpec
from workers.kinds.growth.rules.seeds import SeedTable
from workers.kinds.growth.samples import DeviceSplit
from workers.kinds.growth.tasks.digits import TASK as DIGITS
from workers.kinds.growth.vocabulary import Algorithm
from workers.native import library

WIDTHS = [kernel.name for kernel in library.kernels() if not kernel.problem]
pytestmark = pytest.mark.skipif(not WIDTHS and not IN_CI, reason="the kernel was not built here")
CPU = torch.device("cpu")
ROWS = np.arange(ENVS)


def unexplained(tested_cases: Case, width: str) -> list[str]:
    return [str(comparison) for comparison in compared(tested_cases, width) if comparison.kind == "UNEXPLAINED"]


@pytest.mark.parametrize(
    ("mode", "numbers"),
    [
        ("normal", range(16)),
        ("ragged", range(8)),
        (
            "scales",
            (*range(8), 911295, 940219),
        ),  # the kernel once summed all pixels and channels of a seed in one chain
    ],
)
def test_the_kernel_differs_from_torch_only_by_rounding(mode: str, numbers: range) -> None:
    """Every parameter, momentum, moment and loss of any network, seeds and batch: scripts/fuzz_kernel has more."""
    for number in numbers:
        assert (number, unexplained(drawn(mode, number), WIDTHS[0])) == (number, [])


def bare(levels: int, pools: int, kernel: int, side: int, batch: int, samples: int, rng_seed: int = 0) -> Case:
    """Hosts without seeds."""
    host = HostSpec(in_channels=2, base=4, levels=levels, kernel=kernel, pools=pools, classes=3)
    no_seed = [(-1, STAGES[0], Algorithm.ADD, 0.0, False)]
    return case(host, (side, side), no_seed, batch, samples, np.random.default_rng(rng_seed))


@pytest.mark.parametrize("width", WIDTHS)
def test_batch_norm_of_a_single_value_has_no_gradient(width: str) -> None:
    """The smallest network in which it occurs: what is left of its only batch is the bias, so nothing flows through."""
    for rng_seed in range(40):
        small_case = bare(levels=2, pools=1, kernel=1, side=2, batch=1, samples=1, rng_seed=rng_seed)
        small_case.bank.host.momentum.zero_()
        small_case.bank._rule = msgspec.structs.replace(small_case.bank._rule, weight_decay=0.0)
        for trained in (small_case.by_kernel(width), small_case.by_torch(), small_case.in_float64()):
            first_level_width = 4 * 2 + 2 * 4  # kernel, gain and bias of level 0: behind it comes the single pixel
            assert torch.count_nonzero(trained.bank.host.momentum[:, :first_level_width]) == 0
            assert torch.count_nonzero(trained.bank.host.momentum[:, first_level_width:]) > 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("samples", "batch", "levels"), [(23, 11, 4), (19, 3, 4), (7, 2, 3)])
def test_an_epoch_with_a_last_batch_of_one_sample_equals_torch(
    width: str, samples: int, batch: int, levels: int
) -> None:
    """A last batch of one sample in a host that ends at 1x1, after whole batches."""
    for rng_seed in range(10):
        small_case = bare(levels, levels - 1, 3, 1 << (levels - 1), batch, samples, rng_seed)
        assert unexplained(small_case, width) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_running_variances_are_accurate_even_if_the_mean_changes_greatly(width: str) -> None:
    """Batches of one image each, some dark and some a hundred thousand times brighter: variances as torch has them."""
    dark_case = bare(levels=1, pools=0, kernel=1, side=4, batch=1, samples=8)
    centres = torch.tensor([0.0, 1e5] * 4)[:, None, None, None]
    bright_case = replace(
        dark_case, split=DeviceSplit(dark_case.split.x + centres, dark_case.split.y), order=np.stack([np.arange(8)] * 2)
    )
    variance = bright_case.in_float64().bank.statistics[0].var
    by_torch, by_kernel = (
        float((trained.bank.statistics[0].var / variance - 1.0).abs().max())
        for trained in (bright_case.by_torch(), bright_case.by_kernel(width))
    )
    assert by_kernel < 10.0 * max(by_torch, 1e-6)


ROWED = torch.zeros(3, 4)


@pytest.mark.parametrize(
    "tensor",
    [
        ROWED.double(),
        ROWED.half(),
        ROWED.T.contiguous().T,
        ROWED[:, :3],
        ROWED[:, ::2],
        ROWED.to("meta"),
        ROWED[0],
        ROWED[None],
    ],
)
def test_only_contiguous_float32_rows_on_a_cpu_are_accepted(tensor: torch.Tensor) -> None:
    assert _Rows(ROWED, 4).address(2) == ROWED[2].data_ptr()
    with pytest.raises(ValueError, match="contiguous rows of 4"):
        _Rows(tensor, 4)
    with pytest.raises(ValueError, match="no row 3"):
        _Rows(ROWED, 4).address(3)


def banks(kernel: str) -> tuple[Bank, SeedTable, DeviceSplit]:
    """A bank in which everything occurs, trained by `kernel` for two ragged epochs."""
    bank, table, split = crowded(DIGITS, CPU, 53, kernel=kernel)
    for _ in range(2):
        bank.train_epoch(table, ROWS, split, orders(ENVS, 53))
    return bank, table, split


def test_all_vector_widths_with_fused_arithmetic_give_bit_identical_results() -> None:
    fused_widths = [width for width in WIDTHS if width != "native-generic"]
    if len(fused_widths) < 2:
        pytest.skip("this processor runs one width")
    trained = [banks(width) for width in fused_widths]
    assert equal_to_the_bit(trained[0][0], trained[1][0])
    measurements = [bank.measure(table, ROWS, split, ablate=True) for bank, table, split in trained]
    assert np.array_equal(measurements[0].loss, measurements[1].loss)
    assert np.array_equal(measurements[0].accuracy, measurements[1].accuracy)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_vector_width_computes_the_results_of_torch(width: str) -> None:
    """After eight steps, in some of which a near tie may go the other way; and validation of the same hosts."""
    (kernel_bank, table, split) = banks(width)
    (torch_bank, *_) = banks("torch")
    pairs = list(zip(all_tensors(kernel_bank), all_tensors(torch_bank), strict=True))
    row_agreements = [
        all(torch.allclose(a[row], b[row], rtol=1e-3, atol=2e-4) for a, b in pairs) for row in range(ENVS)
    ]
    assert sum(row_agreements) > ENVS - 4
    for parameter, torch_parameter in pairs:
        torch_parameter.copy_(parameter)
    by_torch, by_kernel = (bank.measure(table, ROWS, split, ablate=True) for bank in (torch_bank, kernel_bank))
    assert np.abs(by_torch.accuracy - by_kernel.accuracy).max() <= 100.0 / 53 + 1e-9  # a near tie of two classes
    assert (by_torch.accuracy == by_kernel.accuracy).mean() > 0.95
    assert by_kernel.loss == pytest.approx(by_torch.loss, rel=1e-5)
    assert np.array_equal(by_kernel.real_accuracy, by_kernel.accuracy[by_kernel.plan.real_rows()])


def test_results_of_a_row_do_not_depend_on_other_rows_or_threads() -> None:
    """Rows trained together, in two threads, in two calls, or after another network used the same memory."""
    trained_together, table, split = banks(WIDTHS[0])
    torch.set_num_threads(2)
    assert equal_to_the_bit(trained_together, banks(WIDTHS[0])[0])
    partial_bank, *_ = crowded(DIGITS, CPU, 53, kernel=WIDTHS[0])
    order = orders(ENVS, 53)
    for rows in (np.array([14, 3]), np.delete(ROWS, [3, 14])):
        for _ in range(2):
            partial_bank.train_epoch(table, rows, split, order[rows])
    assert equal_to_the_bit(trained_together, partial_bank)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("part", ["host", "seed"])
def test_a_non_finite_parameter_affects_only_its_row(value: float, part: str) -> None:
    """In a host, or in a seed in any slot and stage; the memory that it went through is clean afterwards."""
    (clean_bank, table, split), (broken_bank, *_) = (crowded(DIGITS, CPU, 53, kernel=WIDTHS[0]) for _ in range(2))
    env = 5
    stack = broken_bank.host if part == "host" else broken_bank._seeds[0, int(table.blueprint[env, 0])]
    stack.values[env, :8] = value
    clean_losses, broken_losses = (
        bank.train_epoch(table, ROWS, split, orders(ENVS, 53))[0] for bank in (clean_bank, broken_bank)
    )
    validation_losses = broken_bank.measure(table, ROWS, split, ablate=True).loss
    assert not np.isfinite(broken_losses[env]) or not np.isfinite(validation_losses[env]) or abs(value) == 1e30
    other_rows = np.delete(ROWS, env)
    assert np.array_equal(clean_losses[other_rows], broken_losses[other_rows])
    assert np.isfinite(validation_losses[other_rows]).all()
    assert equal_to_the_bit(clean_bank, broken_bank, other_rows)
