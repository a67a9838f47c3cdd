"""`python -m workers.commands.describe`: report the machine, the catalogues and the user's additions.

This is the preflight child: it imports torch so that the control plane need not. The questions (one JSON line on stdin)
and the answer are structs of esper_ab.contracts.children. The child only reports and never decides. To rehearse a
trainer, it starts further processes.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import psutil
import torch

from esper_ab.contracts.gpu_names import is_beyond_one_instance
from esper_ab.contracts.installed_code import sources
from esper_ab.contracts.machine import DOING, Device, Machine, Questions
from esper_ab.contracts.own_packages import take_output
from esper_ab.contracts.process_start import process_started, usable_cores
from esper_ab.contracts.settings import Arithmetic
from workers.devices.by_torch import pin, seen_gpus
from workers.environments import kind_of
from workers.native import library

_GPU_SIGNS = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidia0"))
_CPU_INFO = Path("/proc/cpuinfo")
# Sizes of the timed convolution.
_ENVS = 4
_CHANNELS = 16
_SIDE = 8
_BATCH = 64
_KERNEL = 3
_REPEATS = 8  # of the convolution
_TRIED_SIDE = 512  # of a matrix of 1 MiB


def find_gpus(
    asked: Sequence[str], seen: Sequence[tuple[str, Any]], step_s: Callable[[str], float]
) -> tuple[list[Device], str]:
    """Return the usable GPUs among `seen`, in order, and a sentence about unusable GPUs, or "".

    The GPUs in `asked` are tested and, if they fail, left out. The first GPU that works is also timed.
    """
    gpus = list[Device]()
    n_tested = 0
    broken = list[str]()
    for index, (name, facts) in enumerate(seen):
        gpu = Device(
            name=f"cuda:{index}",
            title=facts.name,
            uuid=name,
            memory_bytes=facts.total_memory,
            capability=f"{facts.major}.{facts.minor}",
        )
        if gpu.name in asked or "cuda" in asked:
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


def cpu_bf16(flags: Iterable[str]) -> Literal["", "avx512_bf16", "amx_bf16"]:
    """Return the best bfloat16 instruction set among the CPU `flags` (Linux names), or ""."""
    if "amx_bf16" in flags:
        return "amx_bf16"
    if "avx512_bf16" in flags:
        return "avx512_bf16"
    return ""


def _cpu_flags() -> list[str]:
    """Return the flags of the first CPU; empty if /proc/cpuinfo is missing."""
    if not _CPU_INFO.is_file():
        return []
    lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines:
        if line.startswith("flags"):
            return line.partition(":")[2].split()
    return []


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
    wanted = f" in CUDA_VISIBLE_DEVICES={pool}" if pool is not None else ""
    return f"this machine has an NVIDIA GPU, but torch {torch.__version__} finds none{wanted}"


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


def _doing(what: str) -> None:
    """Report on stderr what this process is doing now; before the first report it is importing torch."""
    sys.stderr.write(f"{DOING}{what}\n")
    sys.stderr.flush()


def describe(questions: Questions) -> Machine:
    """Return all facts that planning needs about this machine, the catalogues and the user's code."""
    gpu_there = any(sign.exists() for sign in _GPU_SIGNS) or bool(torch.version.hip and torch.cuda.device_count())
    pool = os.environ.get("CUDA_VISIBLE_DEVICES")
    kind = kind_of(questions.task)
    about_task = kind.preflight(questions, _doing)
    _doing("measuring this machine")  # none of the user's code runs any more
    pin(Arithmetic())  # before CUDA begins
    try:
        seen = seen_gpus(pool)  # only now: a trainer's rehearsal had the GPUs to itself
        gpus, unusable = find_gpus(questions.gpus, seen, functools.partial(kind.step_s, questions))
    except RuntimeError as error:
        gpus = []
        unusable = f"CUDA does not start: {error}"
    problem = unusable
    if gpus or not unusable:
        problem = gpu_problem(gpu_there, torch.version.cuda, len(gpus), pool)
    memory_bytes = psutil.virtual_memory().total
    cores = [Device(name=f"cpu:{i}", title="", uuid="", memory_bytes=memory_bytes) for i in range(usable_cores())]
    return Machine(
        torch_version=str(torch.__version__),
        cuda_build=torch.version.cuda or "",
        devices=(*gpus, *cores),
        kernels=library.kernels(),
        multiply_adds_per_s=multiply_adds_per_s(),
        cpu_bf16=cpu_bf16(_cpu_flags()),
        sources=sources(),
        sees_shared_file=not questions.shared_file or Path(questions.shared_file).is_file(),
        gpu_problem=problem,
        unusable_gpus=unusable,
        **vars(about_task),
    )


if __name__ == "__main__":
    started = process_started(os.getpid())
    assert started is not None, "it is alive"
    # The time for starting an interpreter and its imports is measured first; every worker takes that time too.
    start_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    output = take_output()
    answer = describe(msgspec.json.decode(sys.stdin.buffer.readline(), type=Questions))
    output.write(msgspec.json.encode(msgspec.structs.replace(answer, start_s=start_s)))
    output.close()
