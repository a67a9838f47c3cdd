"""Problems that the preflight process finds itself; the preflight's tests use a real machine."""

from types import SimpleNamespace

import pytest

from workers.commands.torch_facts import find_gpus, gpu_problem


@pytest.mark.parametrize(
    ("gpu_there", "cuda_build", "usable", "pool", "complaint"),
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
def test_an_unusable_gpu_is_reported_as_a_problem(
    gpu_there: bool, cuda_build: str | None, usable: int, pool: str | None, complaint: str
) -> None:
    problem = gpu_problem(gpu_there, cuda_build, usable, pool)
    assert complaint in problem
    assert bool(problem) == bool(complaint)


def test_a_requested_gpu_that_fails_is_named_in_the_problem() -> None:
    """There is no GPU of this number anywhere, so that to try it is to fail."""
    facts = SimpleNamespace(name="H200", total_memory=1 << 30, major=9, minor=0)
    properties = [(f"GPU-{index}", facts) for index in range(300)]
    gpus, problem = find_gpus(("cuda:299",), properties, lambda device: 0.0)
    assert [gpu.uuid for gpu in gpus] == [name for name, _ in properties[:-1]]
    assert problem.startswith("GPUs requested: 1, usable: 0; not cuda:299 (")
    assert len(problem.splitlines()) == 1
    gpus, problem = find_gpus((), properties, lambda device: 0.0)
    assert (len(gpus), problem) == (300, "")
