"""Installation builds the kernel's libraries, and succeeds where nothing can be built."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.kernels.compiler import needs_compiler

from workers.native import build

pytest.importorskip("setuptools", minversion="77", reason="an installation in isolation brings its own")
ROOT = Path(__file__).resolve().parents[2]
BUILT = (
    "build",
    "*.egg-info",
    "*.so",
    "*.json",
    "__pycache__",
)  # files of earlier builds, which must not be mistaken for new ones


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy the packages and their build files without built files."""
    for name in ("esper_ab", "workers"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(*BUILT))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def run_setup(checkout: Path, *command: str, compiler: str = "") -> str:
    """Run setup.py and return its output; `compiler` sets $CXX, "" keeps the machine's."""
    environment = os.environ | ({"CXX": compiler, "CC": compiler} if compiler else {})
    line = [sys.executable, "setup.py", *command]
    result = subprocess.run(line, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def build_wheel(checkout: Path, compiler: str = "") -> tuple[str, set[str]]:
    """Build a wheel; return its name and its files below workers/native."""
    run_setup(checkout, "-q", "bdist_wheel", compiler=compiler)
    (file,) = (checkout / "dist").iterdir()
    room = Path("workers/native")
    with zipfile.ZipFile(file) as content:
        names = map(Path, content.namelist())
        return file.name, {str(name.relative_to(room)) for name in names if name.is_relative_to(room)}


def libraries(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith("libkernel")}


def test_an_installation_without_a_compiler_includes_the_kernel_sources(checkout):
    """Torch then trains the hosts; the kernel can be built later from the installed sources."""
    output = run_setup(checkout, "build_ext", "--inplace", compiler="false")
    assert build.REMEDY in output
    assert libraries({path.name for path in (checkout / "workers" / "native").iterdir()}) == set()
    name, wheel_names = build_wheel(checkout, compiler="false")
    assert name.endswith("-py3-none-any.whl"), "an installer prefers one with the kernel, which knows its platform"
    assert libraries(wheel_names) == set()
    assert {f"src/{path.name}" for path in build.sources()} <= wheel_names


@pytest.mark.skipif(not build.on_x86(), reason="only one width is built here")
def test_the_build_says_which_widths_it_could_not_compile_and_why(checkout, tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text(
        "#!/bin/sh\n"
        'case "$*" in *mavx512f*) echo "no such instruction" >&2; exit 1;; esac\n'
        'while [ $# -gt 0 ]; do [ "$1" = -o ] && touch "$2"; shift; done\n'
        "echo compiler 1\n"
    )
    compiler.chmod(0o755)
    output = run_setup(checkout, "build_ext", "--inplace", compiler=str(compiler))
    assert re.search(r'"workers.native.avx512" failed: .*no such instruction', output)
    assert f"not built: avx512; the kernel of width avx2 is used. To have all: {build.REMEDY}" in output
    kept_names = {path.name for path in (checkout / "workers" / "native").iterdir()}
    assert libraries(kept_names) >= {build.library("avx2"), build.library("generic")}
    assert build.library("avx512") not in kept_names


@pytest.mark.slow
@needs_compiler
def test_a_wheel_has_every_kernel_of_its_platform_with_a_build_record(checkout):
    name, wheel_names = build_wheel(checkout)
    assert "-py3-none-" in name
    assert not name.endswith("-any.whl")
    files = {build.library(width) for width in build.built_here()}
    assert libraries(wheel_names) == files | {file.replace(".so", ".json") for file in files}
