"""`python -m workers.commands.describe`: report the machine, the catalogues and the user's additions.

This is the preflight child: it imports torch so that the control plane need not. For runs that a worker only guards, on
a machine without a GPU, nothing needs torch, and it is not imported. The questions (one JSON line on stdin) and the
answer are structs of esper_ab.contracts.children. The child only reports and never decides. To rehearse a trainer, it
starts further processes.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import msgspec
import psutil

from esper_ab.contracts.installed_code import sources
from esper_ab.contracts.machine import DOING, Device, Machine, Questions
from esper_ab.contracts.own_packages import take_output
from esper_ab.contracts.process_start import process_started, usable_cores
from esper_ab.contracts.trainer import is_guarded
from workers.devices.signs import gpu_is_there
from workers.environments import kind_of

_CPU_INFO = Path("/proc/cpuinfo")


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


def _doing(activity: str) -> None:
    """Report on stderr what this process is doing now; before the first report it is importing torch."""
    sys.stderr.write(f"{DOING}{activity}\n")
    sys.stderr.flush()


def describe(questions: Questions) -> Machine:
    """Return all facts that planning needs about this machine, the catalogues and the user's code."""
    kind = kind_of(questions.task)
    about_task = kind.preflight(questions, _doing)
    _doing("measuring this machine")  # none of the user's code runs any more
    gpus = list[Device]()
    if needs_torch(questions):
        from workers.commands.torch_facts import ask_torch

        # Only now: a trainer's rehearsal had the GPUs to itself.
        torch_facts, gpus = ask_torch(questions.gpus, functools.partial(kind.step_s, questions))
        torch_part = msgspec.structs.asdict(torch_facts)
    else:
        torch_part = _facts_without_torch()
    memory_bytes = psutil.virtual_memory().total
    cores = [Device(name=f"cpu:{i}", title="", uuid="", memory_bytes=memory_bytes) for i in range(usable_cores())]
    return Machine(
        devices=(*gpus, *cores),
        cpu_bf16=cpu_bf16(_cpu_flags()),
        sources=sources(),
        sees_shared_file=not questions.shared_file or Path(questions.shared_file).is_file(),
        **torch_part,
        **vars(about_task),
    )


def needs_torch(questions: Questions) -> bool:
    """Whether anything about the machine that torch finds could matter."""
    return questions.trainer is None or not is_guarded(questions.trainer.reference) or gpu_is_there()


def _facts_without_torch() -> dict[str, Any]:
    """Return fields of Machine for runs that a worker only guards, on a machine without a GPU."""
    try:
        torch_version = version("torch")
    except PackageNotFoundError:
        torch_version = ""
    return {
        "torch_version": torch_version,
        "cuda_build": "",
        "multiply_adds_per_s": 0.0,
        "gpu_problem": "",
    }


if __name__ == "__main__":
    started = process_started(os.getpid())
    assert started is not None, "it is alive"
    # The time for starting an interpreter and its imports is measured first; every worker takes that time too.
    start_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started
    output = take_output()
    answer = describe(msgspec.json.decode(sys.stdin.buffer.readline(), type=Questions))
    output.write(msgspec.json.encode(msgspec.structs.replace(answer, start_s=start_s)))
    output.close()
