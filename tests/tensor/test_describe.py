"""The preflight child's own judgements; what it finds on a real machine is tested through the preflight."""

from __future__ import annotations

import pytest

from workers.describe import gpu_problem, task_facts
from workers.tasks.cifar10 import TASK


@pytest.mark.parametrize(
    ("gpu_there", "cuda_build", "usable", "pool", "words"),
    [
        (False, None, 0, None, ""),
        (True, "13.0", 1, None, ""),
        (True, None, 0, None, "build without CUDA"),
        (True, "13.0", 0, None, "finds none"),
        (True, "13.0", 0, "GPU-abc", "finds none in CUDA_VISIBLE_DEVICES=GPU-abc"),
        (True, "13.0", 0, "", ""),  # the user took the GPUs out of the pool
        (True, None, 0, "-1", ""),
    ],
)
def test_a_gpu_that_cannot_be_used_is_a_problem(
    gpu_there: bool, cuda_build: str | None, usable: int, pool: str | None, words: str
) -> None:
    problem = gpu_problem(gpu_there, cuda_build, usable, pool)
    assert words in problem
    assert bool(problem) == bool(words)


def test_cost_of_a_host_by_hand() -> None:
    by_hand = 3 * 8 * 9 * 32**2 + 8 * 16 * 9 * 16**2 + 16 * 32 * 9 * 8**2 + 32 * 10
    assert task_facts(TASK).host_multiply_adds == by_hand
