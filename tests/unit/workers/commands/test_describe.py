"""The preflight child's own judgements; what it finds on a real machine is tested through the preflight."""

from types import SimpleNamespace

import pytest

from workers.commands.describe import find_gpus, gpu_problem


@pytest.mark.parametrize(
    ("gpu_there", "cuda_build", "usable", "pool", "words"),
    [
        (False, None, 0, None, ""),
        (True, "13.0", 1, None, ""),
        (True, None, 0, None, "is not a CUDA build"),
        (True, "13.0", 0, None, "finds none"),
        (True, "13.0", 0, "GPU-abc", "finds none in CUDA_VISIBLE_DEVICES=GPU-abc"),
        (True, "13.0", 0, "", ""),  # the user took the GPUs out of the pool
        (True, None, 0, "-1", ""),
        (True, "13.0", 0, "MIG-a,MIG-b", "names a MIG instance among others, but a process can see only one"),
        (True, None, 0, "MIG-a,MIG-b", "is not a CUDA build"),
        (True, "13.0", 0, "MIG-a", "finds none in CUDA_VISIBLE_DEVICES=MIG-a"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_a_problem(
    gpu_there: bool, cuda_build: str | None, usable: int, pool: str | None, words: str
) -> None:
    problem = gpu_problem(gpu_there, cuda_build, usable, pool)
    assert words in problem
    assert bool(problem) == bool(words)


def test_a_gpu_that_fails_is_named_and_left_out_and_one_that_nobody_asks_for_is_not_touched() -> None:
    """There is no GPU of this number anywhere, so that to try it is to fail."""
    facts = SimpleNamespace(name="H200", total_memory=1 << 30, major=9, minor=0)
    seen = [(f"GPU-{index}", facts) for index in range(300)]
    gpus, told = find_gpus(("cuda:299",), seen, lambda device: 0.0)
    assert [gpu.uuid for gpu in gpus] == [name for name, _ in seen[:-1]]
    assert told.startswith("GPUs requested: 1, usable: 0; not cuda:299 (")
    assert len(told.splitlines()) == 1
    gpus, told = find_gpus((), seen, lambda device: 0.0)
    assert (len(gpus), told) == (300, "")
