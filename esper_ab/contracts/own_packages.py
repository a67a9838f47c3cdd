"""Both packages, imported from where they lie beside each other: `workers` is a name that others use, too.

It is also the program that every child process begins with, `python -P own_packages.py PARENT MODULE ARGUMENT…`: -P
keeps the working directory from the front of the child's sys.path, and the packages are those of the parent. The child
ends when process PARENT does, with 0 by itself, and with -1 when the process does that has started it, whichever it is.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import runpy
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

_ROOT = Path(__file__).absolute().parents[2]
_SAFE_PATH = "PYTHONSAFEPATH"
_WHOEVER = -1  # in the place of a parent's number: whoever starts the process
# Programs that load code which the user names. `evaluate` is none: it reads files from anywhere, and so does not import
# from a folder where they may have been unpacked.
_RUN_USERS_CODE = tuple(f"workers.commands.{name}" for name in ("describe", "rewards", "try_trainer"))
_CLAIMING = threading.Lock()  # workers may be threads of one process, and its module table is one


class ForeignPackage(ImportError):
    """Another package has been imported under one of our names."""


def folder(package: str) -> Path:
    """Where `package` ("workers.rewards") lies, without importing or looking for it; ModuleNotFoundError if nowhere."""
    path = _ROOT.joinpath(*package.split("."))
    if not (path / "__init__.py").is_file() or (
        package == "workers" and b"data plane of esper_ab" not in (path / "__init__.py").read_bytes()
    ):
        raise ModuleNotFoundError(
            f"no package {package!r} of ours in {_ROOT}: another distribution may have a package of that name, and "
            "have written over it or taken it away; `pip install --force-reinstall --no-deps esper-ab` puts it back"
        )
    return path


def claim(module: str) -> None:
    """Make sure that `module`, if it is one of `workers`, is ours, whatever lies on sys.path under that name.

    ForeignPackage when this process has imported another package of that name before.
    """
    if module.partition(".")[0] == "workers":
        _claim("workers")


def import_own(module: str) -> ModuleType:
    """Import `module` after `claim`."""
    claim(module)
    return importlib.import_module(module)


def child_command(module: str, *arguments: str, outlives: bool = False, elsewhere: bool = False) -> list[str]:
    """What `python -m module arguments` would be if the working directory could get in the way of nothing.

    It has to be started by the thread that waits for it, with which it ends; not if it `outlives` this process.
    `elsewhere`: another process than this one will start it and be its parent, perhaps on another machine.
    """
    parent = 0 if outlives else _WHOEVER if elsewhere else os.getpid()
    return [sys.executable, "-P", str(Path(__file__).absolute()), str(parent), module, *arguments]


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` with GPUs numbered as torch has them in the preflight, unless the user sets another order."""
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **environment}


def alone_command(file: str, *arguments: str) -> list[str]:
    """Return what runs a file of ours that needs nothing but what is installed, and finds nothing else."""
    return [sys.executable, "-I", file, *arguments]


@contextmanager
def nothing_of_the_user() -> Iterator[None]:
    """While entered, a spawned process imports neither the main module nor, to begin with, from the working directory.

    multiprocessing has every child import the parent's main module again, for functions that may live there. A worker's
    entry does not, and a script or notebook that starts an experiment would start it again in every worker. And a child
    begins as `python -c`, for which a queue.py in the working directory comes before the standard library's, whatever
    the parent has on its sys.path, which the child is told a moment later.
    """
    main, safe = sys.modules["__main__"], os.environ.get(_SAFE_PATH)
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if safe is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = safe


def add_working_directory() -> None:
    """Let users' files find what lies in the working directory, unless something installed has the same name."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def take_output() -> BinaryIO:
    """Return standard output for the answer of this process; what anybody prints goes to standard error from now on."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answer


def _claim(package: str) -> None:
    """Import the top-level `package` from where it lies beside this one, unless that was done before."""
    init = folder(package) / "__init__.py"
    with _CLAIMING:
        there = sys.modules.get(package)
        if there is None:
            spec = importlib.util.spec_from_file_location(package, init, submodule_search_locations=[str(init.parent)])
            assert spec is not None, "a .py file has a loader"
            assert spec.loader is not None, "a .py file has a loader"
            module = sys.modules[package] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return
    file = getattr(there, "__file__", None)
    if not isinstance(file, str) or Path(file).resolve() != init.resolve():
        found = file or ", ".join(getattr(there, "__path__", ())) or "nowhere"
        raise ForeignPackage(
            f"this process has imported another package `{package}`, from {found}, where {init.parent} is needed; "
            "begin in a process that has not imported it"
        )


def _main() -> None:
    """Be `python -m MODULE ARGUMENT…` with our packages, and end with the parent."""
    starter, parent, module = os.getppid(), int(sys.argv.pop(1)), sys.argv.pop(1)
    found = importlib.util.find_spec("esper_ab")
    if found is None or found.origin is None or Path(found.origin).resolve().parents[1] != _ROOT.resolve():
        sys.path.insert(0, str(_ROOT))  # a checkout that is not what is installed: processes spawned here need it, too
    try:
        for package in ("esper_ab", "workers"):
            _claim(package)
    except ImportError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    if parent:
        # Here, because this file is a program, which finds our packages from now on.
        from esper_ab.contracts.supervisor import end_with_parent

        end_with_parent(starter if parent == _WHOEVER else parent)
    if module in _RUN_USERS_CODE:
        add_working_directory()  # of the others, those that need it are spawned, and do the same by themselves
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
