"""The kernel's libraries: their build, and the checks that select a usable library."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.kernels.compiler import IN_CI, needs_compiler

from workers.native import build, library
from workers.native.build import CannotBuild, Unusable

TINY = """#include <vector>
extern "C" __attribute__((visibility("default"))) int esper_lanes() { return LANES; }
int inner() { return 1; }
template class std::vector<float>;
"""


def make_room(folder: Path) -> Path:
    """Make a folder like workers/native with one small source."""
    (folder / "src").mkdir()
    (folder / "src" / "tiny.cpp").write_text(TINY)
    shutil.copy(build.HERE / "src" / "exports.map", folder / "src")
    return folder


@pytest.fixture
def room(tmp_path: Path) -> Path:
    return make_room(tmp_path)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A room with its library; for tests that do not write to it."""
    room = make_room(tmp_path_factory.mktemp("room"))
    build.make("generic", room, room)
    return room


@pytest.fixture
def built(compiled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)


LIBRARY = Path(build.library("generic"))


@needs_compiler
def test_a_kernel_library_builds_reproducibly(built: Path, tmp_path: Path) -> None:
    """So a plan can name a build by its compiler, flags and sources."""
    record = build.check("generic", built)
    assert record.flags.split() == list(build.flags("generic"))
    assert record.sources == build.sources_sha256(built)
    assert record.compiler in str(record)
    build.make("generic", tmp_path / "elsewhere", built)
    assert (tmp_path / "elsewhere" / LIBRARY).read_bytes() == (built / LIBRARY).read_bytes()


@needs_compiler
@pytest.mark.parametrize(
    ("damage_library", "complaint"),
    [
        (lambda room: (room / "src" / "tiny.cpp").write_text(TINY + "\n"), "other sources"),
        (lambda room: (room / "src" / "more.h").touch(), "other sources"),
        (lambda room: (room / "src" / "tiny.cpp").rename(room / "src" / "small.cpp"), "other sources"),
        (lambda room: (room / LIBRARY.with_suffix(".json")).write_text("{}"), "no build record"),
        (lambda room: (room / LIBRARY.with_suffix(".json")).unlink(), "no build record"),
        (lambda room: (room / LIBRARY).unlink(), "has not been built"),
    ],
)
def test_a_library_that_does_not_match_its_sources_is_refused(built: Path, damage_library, complaint: str) -> None:
    damage_library(built)
    with pytest.raises(Unusable, match=complaint) as refusal:
        build.check("generic", built)
    assert refusal.value.remedy == build.REMEDY


WIDTH = library.runnable()[-1]


def copied(folder: Path) -> Path:
    """The narrowest library with its sources, in `folder`."""
    shutil.copytree(build.HERE, folder, dirs_exist_ok=True)
    return folder / build.library(WIDTH)


def without_the_functions(folder: Path) -> None:
    """Its record is right."""
    (folder / "src").mkdir()
    (folder / "src" / "faulty.cpp").write_text("int something() { return 0; }")
    build.make(WIDTH, folder, folder)


def faulty(folder: Path) -> None:
    """One coefficient of its exponential is a hundredth too large: the case of a compiler with a fault."""
    file = copied(folder)
    coefficient = np.float32(0.0013950601)
    sound_bytes = file.read_bytes()
    file.write_bytes(sound_bytes.replace(coefficient.tobytes(), (coefficient * np.float32(1.01)).tobytes()))
    assert file.read_bytes() != sound_bytes


@needs_compiler
def test_a_stripped_library_is_accepted_if_it_gives_the_known_answer(tmp_path: Path) -> None:
    """As by a distribution's packager; bytes at its end are what a signature adds."""
    file = copied(tmp_path)
    original_bytes = file.read_bytes()
    subprocess.run(["strip", "--strip-unneeded", str(file)], check=True)
    file.write_bytes(file.read_bytes() + b"signed")
    assert file.read_bytes() != original_bytes
    assert library.checked(WIDTH, tmp_path)[1] == build.check(WIDTH)


@needs_compiler
@pytest.mark.parametrize(
    ("make_library", "complaint"), [(without_the_functions, "cannot be loaded"), (faulty, "other bits")]
)
def test_a_library_that_fails_its_known_answer_is_refused(tmp_path: Path, make_library, complaint: str) -> None:
    make_library(tmp_path)
    with pytest.raises(Unusable, match=complaint):
        library.checked(WIDTH, tmp_path)


@needs_compiler
def test_a_failed_compilation_leaves_no_library(built: Path) -> None:
    """The one of before would be stale, and in a wheel there would be nobody to see it."""
    (built / "src" / "tiny.cpp").write_text("no C++")
    with pytest.raises(CannotBuild, match=r"tiny\.cpp"):
        build.make("generic", built, built)
    assert sorted(path.name for path in built.iterdir()) == ["src"]


@pytest.mark.parametrize("compiler", ["false", "/nowhere/c++", ""])
def test_a_build_without_a_compiler_leaves_no_library(
    room: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv("CXX", compiler)
    monkeypatch.setenv("PATH", str(room) if not compiler else "/usr/bin:/bin")
    with pytest.raises(CannotBuild):
        build.make("generic", room, room)
    assert not (room / build.library("generic")).exists()


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("width", build.built_here())
def test_every_vector_width_passes_the_sanitizers(tmp_path: Path, width: str) -> None:
    """Networks of many shapes under the address and undefined-behaviour sanitizers, in a program of its own."""
    if width not in library.runnable():
        pytest.skip("this processor cannot run it")
    driver = Path(__file__).resolve().parents[3] / "support" / "native" / "driver.cpp"
    kernel = [str(path) for path in build.sources() if path.suffix == ".cpp" and not path.name.startswith("policy")]
    flags = [flag for flag in build.flags(width) if flag not in ("-O3", "-shared") and not flag.startswith("-Wl,")]
    sanitizer_flags = [
        "-O1",
        "-g",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        f"-I{build.HERE / 'src'}",
    ]
    program = tmp_path / "driver"
    compiler = next(path for path in map(shutil.which, ("g++", "clang++", "c++")) if path)
    command = [compiler, *flags, *sanitizer_flags, *kernel, str(driver), "-o", str(program)]
    subprocess.run(command, check=True, timeout=600)
    process = subprocess.run([str(program), "60"], capture_output=True, text=True, timeout=300, check=False)
    assert (process.returncode, process.stdout) == (0, "60 networks\n"), process.stderr


@needs_compiler
def test_the_installation_has_every_kernel_that_this_processor_can_run() -> None:
    """In continuous integration the kernel may not be missing; elsewhere torch would train, and nobody would notice."""
    kernels = library.kernels()
    if not IN_CI and all("has not been built" in kernel.problem for kernel in kernels):
        pytest.skip("the kernel was not built here: scripts/install builds it")
    assert kernels
    assert [(kernel.name, kernel.problem) for kernel in kernels if kernel.problem] == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("clang++") is None, reason="no Clang on this machine")
def test_clang_gives_the_known_answer_for_every_vector_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "clang++")
    shutil.copytree(build.HERE / "src", tmp_path / "src")
    for width in library.runnable():
        build.make(width, tmp_path)
        _, record = library.checked(width, tmp_path)
        assert "clang" in record.compiler


def _names_and_refusal(capability: str) -> list[str]:
    """The kernels that a process with this ATEN_CPU_CAPABILITY finds, and what it says of the widest there is."""
    code = (
        "from workers.native import library\n"
        "print(*(kernel.name for kernel in library.kernels()))\n"
        "try:\n    library.load('native-avx512')\nexcept library.build.Unusable as error:\n    print(error)\n"
    )
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability, "PYTHONPATH": str(build.HERE.parents[1])}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return process.stdout.splitlines()


def test_the_kernel_respects_the_cpu_capability_of_torch() -> None:
    """Somebody who has torch keep to less has the kernel keep to it, too; a library is not called to find out."""
    names, refusal = _names_and_refusal("default")
    assert names == "native-generic"
    assert "cannot run here" in refusal
    assert "native-generic" in refusal
