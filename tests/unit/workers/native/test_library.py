"""The kernel's libraries as they are installed: there, checked, and of the arithmetic that they are said to be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
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


@needs_compiler
def test_a_library_without_the_functions_is_not_used(tmp_path: Path) -> None:
    """Its record is right."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "faulty.cpp").write_text("int something() { return 0; }")
    build.make("generic", tmp_path, tmp_path)
    with pytest.raises(Unusable, match="cannot be loaded"):
        library.checked("generic", tmp_path)


@needs_compiler
def test_a_library_that_does_not_compute_as_it_should_is_not_used(tmp_path: Path) -> None:
    """One coefficient of its exponential is a hundredth too large: the case of a compiler with a fault."""
    shutil.copytree(build.HERE, tmp_path, dirs_exist_ok=True)
    width = library.runnable()[-1]
    file = tmp_path / build.library(width)
    right = np.float32(0.0013950601)
    sound = file.read_bytes()
    file.write_bytes(sound.replace(right.tobytes(), (right * np.float32(1.01)).tobytes()))
    assert file.read_bytes() != sound
    with pytest.raises(Unusable, match="other bits"):
        library.checked(width, tmp_path)


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
