"""Import both packages from where they are installed, because other distributions also use the name `workers`.

This file is also the program that starts every child process: `python -P own_packages.py PARENT MODULE ARGUMENT…`. -P
keeps the working directory off the front of the child's sys.path, and the child imports the same packages as its
parent. The child exits when process PARENT exits. If PARENT is 0, the child outlives its parent; if it is -1, the child
exits with the process that started it.
"""

from __future__ import annotations

import atexit
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
_ANY_PARENT = -1  # stands for the parent's process id: whichever process starts the child
# Programs that load code named by the user. `evaluate` is not among them: it reads files from anywhere, so it must not
# import from a folder where such files may have been unpacked.
_RUN_USERS_CODE = (
    "workers.commands.describe",
    "workers.kinds.growth.commands.rewards",
    "workers.kinds.trainer.commands.call_function",
    "workers.kinds.trainer.commands.try_trainer",
)
_ANSWER = (*_RUN_USERS_CODE, "workers.commands.evaluate")  # programs that exit once they have answered
_EXIT_S = 5.0  # at most, for what user code has registered with atexit
_CLAIMING = threading.Lock()  # because workers may be threads of one process, with one module table


class ForeignPackage(ImportError):
    """Another package has already been imported under one of our names."""


def folder(package: str) -> Path:
    """Return the folder of `package` ("workers.kinds") without importing it; ModuleNotFoundError if it is missing."""
    path = _ROOT.joinpath(*package.split("."))
    init = path / "__init__.py"
    is_ours = init.is_file()
    if is_ours and package == "workers":
        is_ours = b"data plane of esper_ab" in init.read_bytes()
    if not is_ours:
        raise ModuleNotFoundError(
            f"esper-ab's package {package!r} is missing in {_ROOT}: another distribution with a package of that name "
            "may have overwritten or removed it; in a clone, `pip install --force-reinstall --no-deps .` restores it"
        )
    return path


def claim(module: str) -> None:
    """If `module` is in `workers`, make sure that later imports of it get our package, whatever sys.path contains.

    Raises ForeignPackage if this process has already imported a different package of that name.
    """
    if module.partition(".")[0] == "workers":
        _claim("workers")


def import_own(module: str) -> ModuleType:
    """Call `claim`, then import `module` and return it."""
    claim(module)
    return importlib.import_module(module)


def child_command(module: str, *arguments: str, outlives: bool = False, elsewhere: bool = False) -> list[str]:
    """Return a command like `python -m module arguments`, but protected from files in the working directory.

    Unless `outlives` is true, the child exits when the thread that started it ends, so the thread must wait for the
    child. `elsewhere`: not this process but another one will start the child, perhaps on another machine.
    """
    if outlives:
        parent = 0
    elif elsewhere:
        parent = _ANY_PARENT
    else:
        parent = os.getpid()
    return [sys.executable, "-P", str(Path(__file__).absolute()), str(parent), module, *arguments]


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` with the GPU order of the preflight, unless the user has set another order."""
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **environment}


def isolated_command(file: str, *arguments: str) -> list[str]:
    """Return a command that runs one of our files in Python's isolated mode, with only the standard library."""
    return [sys.executable, "-I", "-S", file, *arguments]


@contextmanager
def without_users_main_module() -> Iterator[None]:
    """Keep processes spawned inside this context from running the user's code.

    multiprocessing makes every child import the parent's main module, because the child's functions may be defined
    there. Our functions never are. But if the main module is a script or notebook that starts an experiment, every
    worker would start it again. So the children get an empty main module.

    A child starts as `python -c`, and receives the parent's sys.path a little later. Until then, a queue.py in the
    working directory would hide the one in the standard library. So the children start in Python's safe-path mode.
    """
    main_module = sys.modules["__main__"]
    safe_path = os.environ.get(_SAFE_PATH)
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        sys.modules["__main__"] = main_module
        if safe_path is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = safe_path


def add_working_directory() -> None:
    """Let users' files import modules from the working directory, unless an installed module has the same name."""
    folder_now = str(Path.cwd())
    if folder_now not in sys.path:
        sys.path.append(folder_now)


def take_output() -> BinaryIO:
    """Return standard output for this process's answer, and redirect all later prints to standard error."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answer


def _claim(package: str) -> None:
    """Import the top-level `package` installed next to this one; ForeignPackage if a different one is imported."""
    init = folder(package) / "__init__.py"
    with _CLAIMING:
        imported_package = sys.modules.get(package)
        if imported_package is None:
            spec = importlib.util.spec_from_file_location(package, init, submodule_search_locations=[str(init.parent)])
            assert spec is not None, "a .py file has a loader"
            assert spec.loader is not None, "a .py file has a loader"
            module = sys.modules[package] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return
    file = getattr(imported_package, "__file__", None)
    if not isinstance(file, str) or Path(file).resolve() != init.resolve():
        origin = file or ", ".join(getattr(imported_package, "__path__", ())) or "nowhere"
        raise ForeignPackage(
            f"this process has imported another package `{package}` from {origin}, but {init.parent} is needed; use a "
            "process that has not imported that package"
        )


def _leave(error: BaseException | None) -> None:
    """Exit as Python does after `error`, but do not join the threads and processes that user code has left."""
    status = 0 if error is None else 1
    if isinstance(error, SystemExit) and error.code is None:
        status = 0
    elif isinstance(error, SystemExit) and isinstance(error.code, int):
        status = error.code
    elif error is not None:
        sys.excepthook(type(error), error, error.__traceback__)
    timer = threading.Timer(_EXIT_S, os._exit, (status,))
    timer.daemon = True
    timer.start()
    atexit._run_exitfuncs()  # here multiprocessing joins processes
    sys.stdout.flush()
    os._exit(status)


def _main() -> None:
    """Run like `python -m MODULE ARGUMENT…` with our packages, and exit when the parent exits."""
    starter = os.getppid()
    parent = int(sys.argv.pop(1))
    module = sys.argv.pop(1)
    spec = importlib.util.find_spec("esper_ab")
    if spec is None or spec.origin is None or Path(spec.origin).resolve().parents[1] != _ROOT.resolve():
        sys.path.insert(0, str(_ROOT))  # for a checkout that is not installed; processes spawned from here need it, too
    try:
        for package in ("esper_ab", "workers"):
            _claim(package)
    except ImportError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    if parent:
        # Imported here, because this file runs as a program, which can import our packages only from here on.
        from esper_ab.contracts.guard import end_with_parent

        end_with_parent(starter if parent == _ANY_PARENT else parent)
    _run(module)


def become(module: str, *standard: int) -> None:
    """Run the program `module` in this forked process, in a new session.

    `standard`: descriptors that replace standard input, output and error.
    """
    os.setsid()
    for own_descriptor, descriptor in enumerate(standard):
        os.dup2(descriptor, own_descriptor)
        os.close(descriptor)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  multiprocessing has made it /dev/null
    sys.argv = [module]
    _run(module)


def _run(module: str) -> None:
    if module in _RUN_USERS_CODE:
        add_working_directory()  # other processes that need it are spawned, and do it themselves
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        if module in _ANSWER:
            _leave(sys.exc_info()[1])


if __name__ == "__main__":
    _main()
