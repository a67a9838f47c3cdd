"""Building the kernel's libraries: what is built says how, and nothing else is used."""

from __future__ import annotations

import json
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


def _edit_source(room: Path) -> None:
    (room / "src" / "tiny.cpp").write_text(TINY + "\n")


def _add_header(room: Path) -> None:
    (room / "src" / "more.h").write_text("")


def _rename_source(room: Path) -> None:
    (room / "src" / "tiny.cpp").rename(room / "src" / "small.cpp")


def _spoil_record(room: Path) -> None:
    (room / build.library("generic")).with_suffix(".json").write_text("{}")


def _lose_record(room: Path) -> None:
    (room / build.library("generic")).with_suffix(".json").unlink()


def _lose_library(room: Path) -> None:
    (room / build.library("generic")).unlink()


@needs_compiler
@pytest.mark.parametrize(("happens", "said"), [
    (_edit_source, "other sources"), (_add_header, "other sources"), (_rename_source, "other sources"),
    (_spoil_record, "no build record"), (_lose_record, "no build record"), (_lose_library, "has not been built"),
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
def test_of_a_library_only_what_python_calls_can_be_seen(built: Path) -> None:
    if (nm := shutil.which("nm")) is None:
        pytest.skip("no nm")
    for file in (built / build.library("generic"), *build.HERE.glob("*.so")):
        listed = subprocess.run([nm, "-D", "--defined-only", str(file)], capture_output=True, text=True, check=True)
        names = [line.split()[-1] for line in listed.stdout.splitlines()]
        assert names
        assert [name for name in names if not name.startswith("esper_")] == []


def test_every_width_is_of_its_own_lanes_and_the_widest_is_first() -> None:
    lanes = [width.lanes for width in build.WIDTHS.values()]
    assert lanes == sorted(set(lanes), reverse=True)
    assert set(build.built_here()) <= set(build.WIDTHS)
    assert build.built_here()[-1] == "generic"


def test_records_are_json_for_whoever_wants_to_look() -> None:
    for record in build.HERE.glob("libkernel-*.json"):
        assert set(json.loads(record.read_text())) == {"compiler", "flags", "sources", "library"}


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("width", build.built_here())
def test_no_width_leaves_its_memory_or_the_language(tmp_path: Path, width: str) -> None:
    """Networks of many shapes under the address and undefined-behaviour sanitizers, in a program of its own."""
    if width not in library.runnable():
        pytest.skip("this processor cannot run it")
    driver = Path(__file__).resolve().parents[3] / "support" / "native" / "driver.cpp"
    sources = [*(path for path in build.sources() if path.suffix == ".cpp"), driver]
    flags = [flag for flag in build.flags(width) if flag not in ("-O3", "-shared") and not flag.startswith("-Wl,")]
    sanitized = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{build.HERE / 'src'}"]
    program = tmp_path / "driver"
    compiler = next(path for path in map(shutil.which, ("g++", "clang++", "c++")) if path)
    subprocess.run([compiler, *flags, *sanitized, *map(str, sources), "-o", str(program)], check=True, timeout=600)
    done = subprocess.run([str(program), "200"], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "200 networks\n"), done.stderr
