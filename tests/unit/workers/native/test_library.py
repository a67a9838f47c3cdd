"""The kernel's libraries as they are installed: there, checked, and of the arithmetic that they are said to be."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support.compiler import IN_CI, needs_compiler

from esper_ab.contracts.settings import Arithmetic
from workers.native import build, library
from workers.native.build import Unusable

VALUES, LINKS = 257, 64


@needs_compiler
def test_the_installation_has_every_kernel_that_this_processor_can_run() -> None:
    """In continuous integration the kernel may not be missing; elsewhere torch would train, and nobody would notice."""
    found = library.kernels()
    if not IN_CI and all("has not been built" in kernel.problem for kernel in found):
        pytest.skip("the kernel was not built here: scripts/install builds it")
    assert found
    assert [(kernel.name, kernel.problem) for kernel in found if kernel.problem] == []


def _nearest(exact: Fraction) -> np.float32:
    """The float32 nearest to a number; of two, the even one."""
    near = np.float32(float(exact))
    around = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))


def _fused(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    return _nearest(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def _unfused(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    return np.float32(a * b + c)


def _by_definition(multiply_add: Callable[[np.float32, np.float32, np.float32], np.float32]) -> str:
    values = []
    for i in range(VALUES):
        x, steepness = np.float32(1.0) / np.float32(3.0), np.float32(1.5 + i / 4096)
        for _ in range(LINKS):
            x = multiply_add(x * x, -steepness, np.float32(1.0))
        values.append(x)
    return hashlib.sha256(np.array(values).tobytes()).hexdigest()


@pytest.mark.parametrize(("width", "multiply_add"), [
    ("avx512", _fused), ("avx2", _fused), ("generic", _unfused if build.on_x86() else _fused),
])  # fmt: skip
def test_known_answers_are_those_of_exact_arithmetic(width: str, multiply_add) -> None:
    assert library.KNOWN_ANSWER[width] == _by_definition(multiply_add)


_SIGNATURE = 'extern "C" __attribute__((visibility("default"))) void'


@needs_compiler
@pytest.mark.parametrize(("source", "said"), [
    (f"{_SIGNATURE} esper_known_answer(float* out, int n) {{ while (n) out[--n] = 1.0f; }}", "other bits"),
    (f"{_SIGNATURE} esper_something() {{}}", "cannot be loaded"),
])  # fmt: skip
def test_a_library_that_does_not_compute_as_it_should_is_not_used(tmp_path: Path, source: str, said: str) -> None:
    """Its record is right, so that only its own answer can tell: the case of a compiler with a fault."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "faulty.cpp").write_text(source)
    build.make("generic", tmp_path, tmp_path)
    with pytest.raises(Unusable, match=said):
        library.checked("generic", tmp_path)


def test_a_plan_gets_the_build_that_it_names_or_nothing() -> None:
    (kernel, *_) = [kernel for kernel in library.kernels() if not kernel.problem] or [None]
    if kernel is None:
        pytest.skip("the kernel was not built here")
    planned = Arithmetic(kernel=kernel.name, kernel_build=kernel.build)
    library.check(planned)
    with pytest.raises(Unusable, match="another arithmetic"):
        library.check(msgspec.structs.replace(planned, kernel_build=kernel.build.replace("-O3", "-O2")))
    library.check(Arithmetic())


def _told(capability: str) -> list[str]:
    """The kernels that a process with this ATEN_CPU_CAPABILITY finds, and what it says of the widest there is."""
    code = (
        "from workers.native import library\n"
        "print(*(kernel.name for kernel in library.kernels()))\n"
        "try:\n    library.load('native-avx512')\nexcept library.build.Unusable as error:\n    print(error)\n"
    )
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability, "PYTHONPATH": str(build.HERE.parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_widths_are_those_that_torch_may_use() -> None:
    """Somebody who has torch keep to less has the kernel keep to it, too; a library is not called to find out."""
    names, refused = _told("default")
    assert names == "native-generic"
    assert "cannot run here" in refused
    assert "native-generic" in refused
