"""Building the kernel's libraries: what is built says how, and nothing else is used."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.compiler import needs_compiler

from workers.native import build, library
from workers.native.build import CannotBuild, Unusable

TINY = """#include <vector>
extern "C" __attribute__((visibility("default"))) int esper_lanes() { return LANES; }
int inner() { return 1; }
template class std::vector<float>;
"""


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A folder like workers/native with one small source."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "tiny.cpp").write_text(TINY)
    shutil.copy(build.HERE / "src" / "exports.map", tmp_path / "src")
    return tmp_path


@pytest.fixture
def built(room: Path) -> Path:
    build.make("generic", room, room)
    return room


@needs_compiler
def test_a_library_that_was_just_built_is_that_of_its_record(built: Path) -> None:
    record = build.check("generic", built)
    assert record.flags.split() == list(build.flags("generic"))
    assert record.sources == build.sources_sha256(built)
    assert record.compiler in str(record)


@needs_compiler
def test_a_build_is_repeatable(built: Path, tmp_path: Path) -> None:
    """The library counts as code: built twice from the same, it must not look like two states of the code."""
    elsewhere = tmp_path / "elsewhere"
    build.make("generic", elsewhere, built)
    assert (elsewhere / build.library("generic")).read_bytes() == (built / build.library("generic")).read_bytes()


LIBRARY = Path(build.library("generic"))


@needs_compiler
@pytest.mark.parametrize(("happens", "said"), [
    (lambda room: (room / "src" / "tiny.cpp").write_text(TINY + "\n"), "other sources"),
    (lambda room: (room / "src" / "more.h").touch(), "other sources"),
    (lambda room: (room / "src" / "tiny.cpp").rename(room / "src" / "small.cpp"), "other sources"),
    (lambda room: (room / LIBRARY.with_suffix(".json")).write_text("{}"), "no build record"),
    (lambda room: (room / LIBRARY.with_suffix(".json")).unlink(), "no build record"),
    (lambda room: (room / LIBRARY).unlink(), "has not been built"),
])  # fmt: skip
def test_what_does_not_fit_together_is_not_used(built: Path, happens, said: str) -> None:
    happens(built)
    with pytest.raises(Unusable, match=said) as refused:
        build.check("generic", built)
    assert refused.value.remedy == build.REMEDY


@needs_compiler
def test_a_library_that_was_stripped_is_used_for_it_gives_its_known_answer(tmp_path: Path) -> None:
    """As by a distribution's packager; bytes at its end are what a signature adds."""
    shutil.copytree(build.HERE, tmp_path, dirs_exist_ok=True)
    width = library.runnable()[-1]
    file = tmp_path / build.library(width)
    before = file.read_bytes()
    subprocess.run(["strip", "--strip-unneeded", str(file)], check=True)
    file.write_bytes(file.read_bytes() + b"signed")
    assert file.read_bytes() != before
    assert library.checked(width, tmp_path)[1] == build.check(width)


@needs_compiler
def test_sources_that_do_not_compile_leave_no_library(built: Path) -> None:
    """The one of before would be stale, and in a wheel there would be nobody to see it."""
    (built / "src" / "tiny.cpp").write_text("no C++")
    with pytest.raises(CannotBuild, match=r"tiny\.cpp"):
        build.make("generic", built, built)
    assert sorted(path.name for path in built.iterdir()) == ["src"]


@pytest.mark.parametrize("compiler", ["false", "/nowhere/c++", ""])
def test_without_a_compiler_nothing_is_built(room: Path, monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    monkeypatch.setenv("CXX", compiler)
    monkeypatch.setenv("PATH", str(room) if not compiler else "/usr/bin:/bin")
    with pytest.raises(CannotBuild):
        build.make("generic", room, room)
    assert not (room / build.library("generic")).exists()


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("width", build.built_here())
def test_no_width_leaves_its_memory_or_the_language(tmp_path: Path, width: str) -> None:
    """Networks of many shapes under the address and undefined-behaviour sanitizers, in a program of its own."""
    if width not in library.runnable():
        pytest.skip("this processor cannot run it")
    driver = Path(__file__).resolve().parents[3] / "support" / "native" / "driver.cpp"
    kernel = [str(path) for path in build.sources() if path.suffix == ".cpp" and not path.name.startswith("policy")]
    flags = [flag for flag in build.flags(width) if flag not in ("-O3", "-shared") and not flag.startswith("-Wl,")]
    sanitized = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{build.HERE / 'src'}"]
    program = tmp_path / "driver"
    compiler = next(path for path in map(shutil.which, ("g++", "clang++", "c++")) if path)
    command = [compiler, *flags, *sanitized, *kernel, str(driver), "-o", str(program)]
    subprocess.run(command, check=True, timeout=600)
    done = subprocess.run([str(program), "60"], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "60 networks\n"), done.stderr
