"""What torch finds on this machine: its GPUs, its speed on the CPU, and the kernels that compute beside it."""

from __future__ import annotations

import os
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from esper_ab.contracts.gpu_names import is_beyond_one_instance
from esper_ab.contracts.machine import Device, Kernel
from esper_ab.contracts.settings import Arithmetic
from workers.devices.by_torch import pin, seen_gpus
from workers.native import library

_GPU_SIGNS = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidia0"))
# Sizes of the timed convolution.
_ENVS = 4
_CHANNELS = 16
_SIDE = 8
_BATCH = 64
_KERNEL = 3
_REPEATS = 8  # of the convolution
_TRIED_SIDE = 512  # of a matrix of 1 MiB


class TorchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the preflight's answer for which torch is needed; the fields are those of Machine."""

    torch_version: str
    cuda_build: str
    kernels: tuple[Kernel, ...]
    multiply_adds_per_s: float
    gpu_problem: str
    unusable_gpus: str


def ask_torch(asked_devices: Sequence[str], step_s: Callable[[str], float]) -> tuple[TorchFacts, list[Device]]:
    """Return what torch finds, and the usable GPUs; see `find_gpus`."""
    gpu_there = any(sign.exists() for sign in _GPU_SIGNS) or bool(torch.version.hip and torch.cuda.device_count())
    pool = os.environ.get("CUDA_VISIBLE_DEVICES")
    pin(Arithmetic())  # before CUDA begins
    try:
        gpus, unusable = find_gpus(asked_devices, seen_gpus(pool), step_s)
    except RuntimeError as error:
        gpus = []
        unusable = f"CUDA does not start: {error}"
    problem = unusable
    if gpus or not unusable:
        problem = gpu_problem(gpu_there, torch.version.cuda, len(gpus), pool)
    facts = TorchFacts(
        torch_version=str(torch.__version__),
        cuda_build=torch.version.cuda or "",
        kernels=library.kernels(),
        multiply_adds_per_s=multiply_adds_per_s(),
        gpu_problem=problem,
        unusable_gpus=unusable,
    )
    return facts, gpus


def find_gpus(
    asked_devices: Sequence[str], visible_gpus: Sequence[tuple[str, Any]], step_s: Callable[[str], float]
) -> tuple[list[Device], str]:
    """Return the usable GPUs among `visible_gpus`, in order, and a sentence about unusable GPUs, or "".

    The GPUs in `asked_devices` are tested and, if they fail, left out. The first GPU that works is also timed.
    """
    gpus = list[Device]()
    n_tested = 0
    broken = list[str]()
    for index, (name, facts) in enumerate(visible_gpus):
        gpu = Device(
            name=f"cuda:{index}",
            title=facts.name,
            uuid=name,
            memory_bytes=facts.total_memory,
            capability=f"{facts.major}.{facts.minor}",
        )
        if gpu.name in asked_devices or "cuda" in asked_devices:
            n_tested += 1
            try:
                square = torch.ones(_TRIED_SIDE, _TRIED_SIDE, device=gpu.name)
                (square @ square).sum().item()  # waits for the GPU
                if n_tested == 1 + len(broken):
                    gpu = msgspec.structs.replace(gpu, step_s=step_s(gpu.name))
            except (RuntimeError, AssertionError) as error:  # AssertionError: a build without CUDA
                broken.append(gpu.name + " (" + str(error).partition("\n")[0] + ")")
                continue
        gpus.append(gpu)
    if not broken:
        return gpus, ""
    return gpus, f"GPUs requested: {n_tested}, usable: {n_tested - len(broken)}; not {', '.join(broken)}"


def gpu_problem(gpu_there: bool, cuda_build: str | None, usable: int, pool: str | None) -> str:
    """Return why torch cannot use an existing GPU; "" if torch can, if there is no GPU, or if the pool is empty."""
    if not gpu_there or usable or pool in ("", "-1"):
        return ""
    if not cuda_build:
        return f"this machine has a GPU, but torch {torch.__version__} is not a CUDA build; only CUDA GPUs are used"
    if is_beyond_one_instance(pool):
        return (
            f"CUDA_VISIBLE_DEVICES={pool} names a MIG instance among others, but a process can see only one "
            "of them: name one, and launch another experiment for each of the others"
        )
    pool_words = f" in CUDA_VISIBLE_DEVICES={pool}" if pool is not None else ""
    return f"this machine has an NVIDIA GPU, but torch {torch.__version__} finds none{pool_words}"


def multiply_adds_per_s() -> float:
    """Return the multiply-adds per second of one thread for a grouped convolution, forward and backward."""
    pin(Arithmetic())
    width = _ENVS * _CHANNELS
    x = torch.ones(_BATCH, width, _SIDE, _SIDE)
    weight = torch.ones(width, _CHANNELS, _KERNEL, _KERNEL, requires_grad=True)

    def pass_both_ways() -> None:
        loss = torch.nn.functional.conv2d(x, weight, padding=1, groups=_ENVS).sum()
        loss.backward()  # type: ignore[no-untyped-call]

    forward = _BATCH * width * _CHANNELS * _KERNEL**2 * _SIDE**2
    took_s = timeit.repeat(pass_both_ways, repeat=2, number=_REPEATS)[-1]
    return 3 * forward * _REPEATS / took_s
