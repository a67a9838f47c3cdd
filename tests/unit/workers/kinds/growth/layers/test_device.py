"""Inputs of torch's kernels on other devices, and equality of the GPU code path with a CPU's numbers."""

import numpy as np
import pytest
import torch
from support.kernels.kernel_cases import all_tensors
from support.kernels.meta_device import META, Calls, LiveBytes
from support.worlds.tensor_world import BATCH, ENVS, crowded, orders

from esper_ab.plan import gpu_memory
from workers.kinds.growth.datasets.task import Task
from workers.kinds.growth.layers import device as _device
from workers.kinds.growth.preflight import task_facts
from workers.kinds.growth.tasks import cifar10, digits

TASKS = [digits.TASK, pytest.param(cifar10.TASK, marks=pytest.mark.slow)]
ROWS = np.arange(ENVS)


@pytest.fixture(autouse=True)
def _nothing_to_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes from the meta device is zeros."""
    plain_cpu = torch.Tensor.cpu
    monkeypatch.setattr(
        torch.Tensor, "cpu", lambda self: torch.zeros_like(self, device="cpu") if self.is_meta else plain_cpu(self)
    )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_group_norms_receive_contiguous_images_except_on_a_cpu(task: Task) -> None:
    """CUDA's refuses images that are not contiguous, and older backward passes read gradients as if they were."""
    bank, table, split = crowded(task, META, 2 * BATCH)
    with Calls() as calls:
        bank.train_epoch(table, ROWS, split, orders(ENVS, 2 * BATCH))
        bank.measure(table, ROWS, split, ablate=True)
    images = [
        tensor
        for name, tensors in calls.entries
        if "native_group_norm" in name
        for tensor in tensors
        if tensor.dim() == 4
    ]
    assert images
    assert all(image.is_contiguous() for image in images)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_memory_on_a_gpu_matches_the_estimate_of_a_plan(task: Task) -> None:
    """Of a training step with every blueprint, and of a validation with all counterfactuals."""
    bank, table, split = crowded(task, META, 4096, batch_size=128)
    with LiveBytes() as training:
        bank.train_epoch(table, ROWS, split, orders(ENVS, 256))
    with LiveBytes() as validation:
        bank.measure(table, ROWS, split, ablate=True)
    expected = gpu_memory.training_bytes(task_facts(task), ENVS, 128)
    spare_bytes = gpu_memory.FIXED_BYTES / 16  # small hosts have seeds that are larger than themselves
    assert 0.4 * expected < training.peak < expected + spare_bytes
    memory = _device.room(META) * _device.PIECE
    assert 1 << 20 < validation.peak < memory / gpu_memory.VALIDATION_SHARE


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_gpu_code_path_gives_the_same_numbers_as_the_cpu_path(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, on a CPU: losses, accuracies, hosts, seeds and moments after an epoch, and every configuration."""
    results = []
    for is_cpu in (True, False):
        monkeypatch.setattr(_device, "is_cpu", lambda _device, answer=is_cpu: answer)
        bank, table, split = crowded(task, torch.device("cpu"), 2 * BATCH + 3, torch.float64)
        trained = bank.train_epoch(table, ROWS, split, orders(ENVS, 2 * BATCH + 3))
        measured_pass = bank.measure(table, ROWS, split, ablate=True)
        results.append(
            [*trained, measured_pass.accuracy, measured_pass.loss, *(tensor.numpy() for tensor in all_tensors(bank))]
        )
    for meta_array, cpu_array in zip(*results, strict=True):
        np.testing.assert_allclose(meta_array, cpu_array, rtol=1e-9, atol=1e-12)
