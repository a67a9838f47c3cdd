"""Builds the kernel's libraries from src/, one per width, when setup.py installs the package; checks them later.

A library computes LANES samples in parallel. A build record next to it says how it was built. A library whose record
does not match the sources next to it is stale and not used. Imports nothing of this project, because setup.py runs it
as a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REMEDY = (
    "in a clone, with a C++ compiler at hand (GCC or Clang), install again: scripts/install, or pip install -v "
    "--force-reinstall --no-deps . which also says why a kernel cannot be built"
)
_COMMON = (
    "-O3",
    "-std=c++17",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-math-errno",
)
_COMPILERS = ("g++", "clang++", "c++")  # the first one found, unless $CXX is set
_READS_MAPS = sys.platform != "darwin"
_X86 = ("x86_64", "amd64")


@dataclass(frozen=True)
class Width:
    """The number of samples computed in parallel, and the compiler flags for the instructions that do so."""

    lanes: int
    flags: tuple[str, ...] = ()


WIDTHS = {  # the widest first
    "avx512": Width(16, ("-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma")),
    "avx2": Width(8, ("-mavx2", "-mfma")),
    "generic": Width(4),
}


@dataclass(frozen=True, kw_only=True)
class BuildRecord:
    """How a library was built."""

    compiler: str  # its name and version, as the compiler prints them
    flags: str
    sources: str  # sha256 over names and contents of src/
    library: str  # sha256 when built; stripping or signing by a distribution changes it, but not the known answer

    def __str__(self) -> str:
        return f"{self.compiler}; {self.flags}; sources {self.sources[:16]}"


class CannotBuild(RuntimeError):
    """There is no compiler, or the compiler could not compile the sources."""


class Unusable(RuntimeError):
    """A library is missing, was built from different sources, or cannot run here; `remedy` may be empty."""

    def __init__(self, problem: str, remedy: str = REMEDY) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.problem, self.remedy)))


def on_x86() -> bool:
    """Return whether this is an x86-64 processor; which wide instructions it has depends on its model."""
    return platform.machine().lower() in _X86


def built_here() -> tuple[str, ...]:
    """Return the widths that an installation on this kind of processor builds, widest first."""
    return tuple(WIDTHS) if on_x86() else ("generic",)


def library(width: str) -> str:
    """Return the file name of a width's library; its record has the suffix .json instead."""
    return f"libkernel-{width}.so"


def sources(folder: Path = HERE) -> tuple[Path, ...]:
    """Return the files that a library is built from, sorted: translation units, headers and the list of exports."""
    return tuple(sorted(path for path in (folder / "src").iterdir() if path.suffix in (".cpp", ".h", ".map")))


def sources_sha256(folder: Path = HERE) -> str:
    """Return the sha256 of the names and contents of the sources."""
    sha = hashlib.sha256()
    for path in sources(folder):
        sha.update(f"{path.name} {_sha256(path)}\n".encode())
    return sha.hexdigest()


def flags(width: str) -> tuple[str, ...]:
    """Return the compiler flags for a width, including all that affect the arithmetic."""
    return (*_COMMON, f"-DLANES={WIDTHS[width].lanes}", *WIDTHS[width].flags)


def make(width: str, folder: Path, source: Path = HERE) -> None:
    """Compile the sources in `source` to `folder` and write the record.

    If CannotBuild is raised, `folder` has no library of this width.
    """
    target = folder / library(width)
    target.unlink(missing_ok=True)
    target.with_suffix(".json").unlink(missing_ok=True)
    compiler = _compiler()
    version = _run([*compiler, "--version"]).partition("\n")[0].strip()
    folder.mkdir(parents=True, exist_ok=True)
    # Names instead of paths, so that no path gets into the library.
    units = [path.name for path in sources(source) if path.suffix == ".cpp"]
    exports = [f"-Wl,--version-script={path.name}" for path in sources(source) if path.suffix == ".map" and _READS_MAPS]
    draft = target.with_suffix(f".{os.getpid()}")
    try:
        _run([*compiler, *flags(width), *units, *exports, "-o", str(draft.resolve())], source / "src")
        record = BuildRecord(
            compiler=version, flags=" ".join(flags(width)), sources=sources_sha256(source), library=_sha256(draft)
        )
        draft.replace(target)  # not written over, because a process may be using it
    finally:
        draft.unlink(missing_ok=True)
    target.with_suffix(".json").write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")


def check(width: str, folder: Path = HERE) -> BuildRecord:
    """Return the record of the library in `folder`; Unusable unless it was built from the sources in `folder`."""
    file = folder / library(width)
    if not file.is_file():
        raise Unusable(f"{file.name} has not been built")
    try:
        record = BuildRecord(**json.loads(file.with_suffix(".json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise Unusable(f"{file.name} has no build record that can be read ({error})") from None
    if record.sources != sources_sha256(folder):
        raise Unusable(f"{file.name} was built from other sources than those beside it")
    return record


def _compiler() -> list[str]:
    """Return the command of the C++ compiler: $CXX, or the first one found."""
    if named_compiler := shlex.split(os.environ.get("CXX", "")):
        return named_compiler
    compiler = next((path for name in _COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        raise CannotBuild(f"no C++ compiler: neither $CXX nor {', '.join(_COMPILERS)}")
    return [compiler]


def _run(command: list[str], folder: Path | None = None) -> str:
    """Run a compiler command and return its output; CannotBuild if it fails.

    There is no time limit: on a busy machine, compilation takes any time, and whoever installs can interrupt it.
    """
    try:
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotBuild(f"{command[0]}: {error}") from None
    if process.returncode:
        raise CannotBuild(f"`{shlex.join(command)}` ended with {process.returncode}: {process.stderr.strip()}")
    return process.stdout


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
