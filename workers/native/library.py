"""Loads the kernel's libraries, from this folder only, and checks each of them before its first call.

A library is usable if it was built, can run here and gives the known answer; otherwise Unusable names the remedy. The
experiment's plan decides which library trains the hosts; this module does not.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import msgspec
import torch

from esper_ab.contracts.machine import Kernel
from esper_ab.contracts.settings import Arithmetic, HostKernel
from workers.native import binding, build, policy
from workers.native.build import Unusable
from workers.native.known_answer import known_answer

_PREFIX = "native-"  # precedes a width in the name of a kernel in plans
# sha256 of the values' bytes, one for each arithmetic; an x86-64 may have no fused multiply-add in hardware.
_FUSED = "026ceedb03df625e5baf7e3bfcc6c7899c1da369c6c94c81c7189a1d6c508e50"
_UNFUSED = "090e1cf3528a2331d9e7b1aa71cb046f7b6bfa8cc71ec0cce27b0809c3623add"
KNOWN_ANSWER = {"avx512": _FUSED, "avx2": _FUSED, "generic": _UNFUSED if build.on_x86() else _FUSED}
_POLICY_FUSED = "af841bcc410c24ee0087bbee507f08ae38d365ac186b30a9fcc026c7e135d139"
_POLICY_UNFUSED = "b838e6139789fd6e4830f257f5b678015f54eabdf4887755dc0b5e5ddd175b39"
POLICY_ANSWER = {_FUSED: _POLICY_FUSED, _UNFUSED: _POLICY_UNFUSED}  # by the kernel's answer: one arithmetic, one policy


def runnable() -> tuple[str, ...]:
    """Return the widths that this processor can run, built or not, widest first.

    The processor's capability is the one that torch reports, which ATEN_CPU_CAPABILITY can lower.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    missing_widths: tuple[str, ...] = ("avx512", "avx2")
    if capability == "AVX2":
        missing_widths = ("avx512",)
    elif capability.startswith("AVX512"):
        missing_widths = ()
    return tuple(width for width in build.built_here() if width not in missing_widths)


def kernels() -> tuple[Kernel, ...]:
    """Return the build, or the problem, of every width that this processor can run, widest first."""
    return tuple(_kernel(width) for width in runnable())


def _kernel(width: str) -> Kernel:
    kernel = Kernel(name=f"{_PREFIX}{width}")  # type: ignore[arg-type]
    try:
        return msgspec.structs.replace(kernel, build=str(checked(width)[1]))
    except Unusable as error:
        return msgspec.structs.replace(kernel, problem=error.problem, remedy=error.remedy)


def load(kernel: HostKernel) -> ctypes.CDLL:
    """Return the library that is named `kernel` in plans; Unusable if the library is not available."""
    return checked(kernel.removeprefix(_PREFIX))[0]


def check(arithmetic: Arithmetic) -> None:
    """Raise Unusable if a plan's kernel is not available here or was not built as the plan says."""
    if arithmetic.kernel == "torch":
        return
    built = str(checked(arithmetic.kernel.removeprefix(_PREFIX))[1])
    if built != arithmetic.kernel_build:
        raise Unusable(
            f"{arithmetic.kernel} is another arithmetic here ({built}) than in the plan ({arithmetic.kernel_build})",
            "install what made the plan, with the compiler that it names",
        )


@functools.cache
def checked(width: str, folder: Path = build.HERE) -> tuple[ctypes.CDLL, build.BuildRecord]:
    """Load a width's library, once per process; Unusable unless its record and its known answer are right."""
    if width not in runnable():
        names = ", ".join(_PREFIX + width_name for width_name in runnable())
        raise Unusable(
            f"kernel {_PREFIX}{width} cannot run here: torch finds {torch.backends.cpu.get_cpu_capability()} "
            f"(ATEN_CPU_CAPABILITY can lower it), which goes with {names}",
            remedy="",
        )
    record = build.check(width, folder)
    file = folder / build.library(width)
    try:
        library = ctypes.CDLL(str(file))  # as a path, so that no folder is searched
        binding.declare(library, binding.layout(binding.STRUCTS, build.WIDTHS[width].lanes))
        answer = known_answer(library)
        is_right = answer == KNOWN_ANSWER[width] and policy.known_answer(library) == POLICY_ANSWER[answer]
    except (OSError, AttributeError, ValueError) as error:
        raise Unusable(f"{file.name} cannot be loaded ({error})") from None
    if not is_right:
        raise Unusable(f"{file.name} computes other bits than its known answer")
    return library, record
