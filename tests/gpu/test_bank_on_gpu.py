"""Banks on a real GPU: equality with the CPU, no synchronisation, memory pressure, half precision."""

import numpy as np
import pytest
import torch
from support.kernels.kernel_cases import all_tensors
from support.worlds.tensor_world import BATCH, ENVS, crowded, env_path, orders

from workers.kinds.growth.bank.bank import Bank
from workers.kinds.growth.datasets.task import Task
from workers.kinds.growth.rules.seeds import SeedTable
from workers.kinds.growth.samples import DeviceSplit
from workers.kinds.growth.tasks import cifar10, digits, synthetic

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),  # torch warns that its sync debug mode is a prototype
]
CPU = torch.device("cpu")
GPU = torch.device("cuda:0")
BF16 = pytest.param("bf16", marks=pytest.mark.bf16)
ROWS = np.arange(ENVS)
SAMPLES = 2 * BATCH
every_task = pytest.mark.parametrize("task", [synthetic.TASK, digits.TASK, cifar10.TASK], ids=lambda task: task.name)


def epoch(bank: Bank, table: SeedTable, split: DeviceSplit) -> np.ndarray:
    """Train one epoch in every environment and return the losses."""
    return bank.train_epoch(table, ROWS, split, orders(ENVS, len(split.y)))[0]


@pytest.mark.real_gpu
@every_task
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.usefixtures("pinned")
def test_training_and_validation_match_the_cpu(task: Task, dtype: torch.dtype) -> None:
    """In float64 all tensors are compared: no ReLU is so near zero that the order of sums could matter."""
    results = []
    for device in (CPU, GPU):
        bank, table, split = crowded(task, device, SAMPLES, dtype)
        losses = [epoch(bank, table, split), bank.measure(table, ROWS, split, ablate=True).loss]
        results.append(
            losses if dtype is torch.float32 else [*losses, *(tensor.cpu().numpy() for tensor in all_tensors(bank))]
        )
    rtol, atol = (1e-3, 0.0) if dtype is torch.float32 else (1e-8, 1e-10)
    for cpu_array, gpu_array in zip(*results, strict=True):
        np.testing.assert_allclose(gpu_array, cpu_array, rtol=rtol, atol=atol)


@every_task
@pytest.mark.parametrize("amp", ["off", BF16, "fp16"])
@pytest.mark.usefixtures("pinned")
def test_a_training_step_does_not_wait_for_the_gpu(task: Task, amp: str) -> None:
    bank, table, split = crowded(task, GPU, SAMPLES, amp=amp)
    epoch(bank, table, split)  # kernels and workspaces are loaded
    torch.cuda.set_sync_debug_mode("error")
    try:
        bank.germinate(ENVS - 1, 0, 0, env_path(0))
        bank.open_gate(ENVS - 1, 0, 0, env_path(0))
        bank.settle()
        losses = bank._train_rows(table, ROWS, split, orders(ENVS, SAMPLES))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.isfinite(losses).all()


@pytest.mark.real_gpu
@every_task
@pytest.mark.parametrize("amp", ["off", BF16, "fp16"])
@pytest.mark.usefixtures("deterministic")
def test_deterministic_kernels_give_bit_identical_results(task: Task, amp: str) -> None:
    results = []
    for _ in range(2):
        bank, table, split = crowded(task, GPU, SAMPLES, amp=amp)
        loss = epoch(bank, table, split)
        validation = bank.measure(table, ROWS, split, ablate=True)
        results.append([loss, validation.loss, validation.accuracy, bank.host.values.cpu().numpy()])
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.real_gpu
@pytest.mark.parametrize("amp", ["off", BF16, "fp16"])
@pytest.mark.usefixtures("deterministic")
def test_memory_pressure_does_not_change_results(amp: str) -> None:
    """Freed blocks are reused and overwritten at once, so a tensor that is freed while still read would change."""
    results = []
    for is_under_pressure in (False, True):
        torch.cuda.empty_cache()
        bank, table, split = crowded(digits.TASK, GPU, SAMPLES, amp=amp)
        filler = []
        if is_under_pressure:
            free_bytes, _ = torch.cuda.mem_get_info()
            filler = [torch.empty(max(1, free_bytes - (512 << 20)), dtype=torch.uint8, device=GPU)]
        for _ in range(3):
            loss = epoch(bank, table, split)
            if is_under_pressure:
                cached_bytes = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
                torch.full((max(1, cached_bytes // 2),), 255, dtype=torch.uint8, device=GPU)
        results.append((loss, bank.host.values.cpu()))
        del filler
    assert np.array_equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


@pytest.mark.usefixtures("deterministic")
def test_an_overflow_in_float16_affects_only_its_environment() -> None:
    """It skips the step and halves its loss scale; the other environments keep their bits."""
    results = []
    for scale in (64.0, 2.0**60):
        bank, table, split = crowded(digits.TASK, GPU, BATCH, amp="fp16")
        assert bank.loss_scales is not None
        bank.loss_scales.scale.fill_(64.0)
        bank.loss_scales.scale[3] = scale
        values_before = bank.host.values.cpu()
        epoch(bank, table, split)
        results.append((bank.host.values.cpu(), bank.loss_scales.scale.cpu()))
    (clean_hosts, _), (hosts, scales) = results
    other_envs = [env for env in range(ENVS) if env != 3]
    assert torch.equal(hosts[other_envs], clean_hosts[other_envs])
    assert (scales[other_envs] == 64.0).all()
    assert torch.equal(hosts[3], values_before[3])
    assert scales[3] == 2.0**59


@pytest.mark.real_gpu
@pytest.mark.parametrize("task", [synthetic.TASK, digits.TASK], ids=lambda task: task.name)
@pytest.mark.parametrize("amp", [BF16, "fp16"])
@pytest.mark.usefixtures("pinned")
def test_half_precision_losses_are_close_to_float32(task: Task, amp: str) -> None:
    half_precision = crowded(task, GPU, SAMPLES, amp=amp)
    single_precision = crowded(task, GPU, SAMPLES)
    if half_precision[0].loss_scales is not None:
        half_precision[0].loss_scales.scale.fill_(64.0)  # so that no step is skipped
    np.testing.assert_allclose(epoch(*half_precision), epoch(*single_precision), rtol=0.02)
