"""The kernel's libraries as they are installed: there, checked, and of the arithmetic that they are said to be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from support.compiler import IN_CI, needs_compiler

from esper_ab.contracts.settings import Arithmetic
from workers.native import build, library
from workers.native.build import Unusable


@needs_compiler
def test_the_installation_has_every_kernel_that_this_processor_can_run() -> None:
    """In continuous integration the kernel may not be missing; elsewhere torch would train, and nobody would notice."""
    found = library.kernels()
    if not IN_CI and all("has not been built" in kernel.problem for kernel in found):
        pytest.skip("the kernel was not built here: scripts/install builds it")
    assert found
    assert [(kernel.name, kernel.problem) for kernel in found if kernel.problem] == []


_SIGNATURE = 'extern "C" __attribute__((visibility("default"))) int'


@needs_compiler
@pytest.mark.parametrize(("source", "said"), [
    (f"{_SIGNATURE} esper_known_answer(float* out, int n) {{ while (n) out[--n] = 1.0f; return 0; }}", "other bits"),
    (f"{_SIGNATURE} esper_something() {{ return 0; }}", "cannot be loaded"),
])  # fmt: skip
def test_a_library_that_does_not_compute_as_it_should_is_not_used(tmp_path: Path, source: str, said: str) -> None:
    """Its record is right, so that only its own answer can tell: the case of a compiler with a fault."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "faulty.cpp").write_text(source)
    build.make("generic", tmp_path, tmp_path)
    with pytest.raises(Unusable, match=said):
        library.checked("generic", tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("clang++") is None, reason="no Clang on this machine")
def test_clang_gives_the_known_answer_in_every_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "clang++")
    shutil.copytree(build.HERE / "src", tmp_path / "src")
    for width in library.runnable():
        build.make(width, tmp_path)
        _, record = library.checked(width, tmp_path)
        assert "clang" in record.compiler


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
