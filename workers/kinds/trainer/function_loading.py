"""Loads the file of a user's function in a process of its own, as multiprocessing does in a spawned process.

The file's main block is not executed. A file that is no part of a package is the module `__mp_main__`. The folder from
which the file is imported comes first in sys.path, as for a script. Code may be taken from copies of files, which are
executed under the names and paths of the files.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path, PurePath
from types import CodeType, ModuleType
from typing import TypeVar

from esper_ab.contracts.errors import USER_FAULTS
from esper_ab.contracts.regular_file import read_regular

_MAIN = "__mp_main__"
_INSTALLED = {"site-packages", "dist-packages"}
Returned = TypeVar("Returned")


class EndOfLoading(BaseException):
    """Ends the loading of a file that would start the comparison again: what comes before is all that it needs."""


def guarded(failure_words: str, path: Path, action: Callable[[], Returned]) -> Returned:
    """Return the result of `action`; ValueError, after the traceback has been printed, if it raises an exception."""
    try:
        return action()
    except USER_FAULTS as error:
        traceback.print_exc()
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        place_words = f" ({path.name}, line {lines[-1]})" if lines else ""
        raise ValueError(
            f"{failure_words}: {type(error).__name__}: {' '.join(str(error).split())}{place_words}"
        ) from None


def located(place: str, files: Sequence[str]) -> tuple[Path, Path]:
    """Return the folder from which a function's file is imported, and the file relative to it."""
    path = Path(place) if place.endswith(".py") else _module_file(place)
    if files:
        levels = len(PurePath(files[0]).parts)
    elif path.is_file():
        levels = 1 + min(_packages_above(path), len(path.parents) - 1)
    else:
        raise ValueError(f"{path}: no such file")
    root = path.parents[levels - 1]
    return root, path.relative_to(root)


def _module_file(name: str) -> Path:
    """Return the file of a module without executing it or its package."""
    top, *inner_parts = name.split(".")
    spec = importlib.util.find_spec(top)
    for part in inner_parts:
        if spec is not None:
            spec = PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations or [])
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise ValueError(f"no module {name!r}; start where Python finds it, or name the file, as in src/{top}.py:train")
    return Path(spec.origin)


def _packages_above(path: Path) -> int:
    """Return how many folders above a file are packages: by their __init__.py, or by the file's relative imports."""
    packages = 0
    while (path.parents[packages] / "__init__.py").is_file():
        packages += 1
    try:
        tree = ast.parse(read_regular(path))
    except (SyntaxError, ValueError):  # told when the file is executed
        return packages
    return max([packages, *(node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))])


class _KeptLoader(SourceFileLoader):
    """Executes the copy of a file under the file's own name and path."""

    def __init__(self, name: str, path: Path, copy: Path) -> None:
        super().__init__(name, str(path))
        self._kept = copy

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(read_regular(self._kept), self.path)
        return code


class _KeptFiles(MetaPathFinder):
    """Finds the modules of which there are copies."""

    def __init__(self, root: Path, copies_folder: Path, files: Iterable[str]) -> None:
        self._root = root
        self._kept = copies_folder
        self._files = {_module_name(PurePath(file)): file for file in files}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        file = self._files.get(name)
        return None if file is None else _spec(name, self._root / file, self._kept / file)


def _module_name(file: PurePath) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def _spec(name: str, path: Path, copy: Path) -> ModuleSpec:
    package = [str(path.parent)] if path.name == "__init__.py" else None
    loader = _KeptLoader(name, path, copy)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader, submodule_search_locations=package)
    assert spec is not None, "it has a loader"
    return spec


def loaded(root: Path, file: Path, copies_folder: Path, files: Sequence[str]) -> ModuleType:
    """Execute `file`, which is imported from `root`, as a module; ValueError, with one line, if that fails.

    `copies_folder`: the folder with copies of `files`, or `root`.
    """
    sys.path.insert(0, str(root))
    if copies_folder != root:
        sys.meta_path.insert(0, _KeptFiles(root, copies_folder, files))
    is_single_file = len(file.parts) == 1
    name = _MAIN if is_single_file else _module_name(file)
    spec = _spec(name, root / file, copies_folder / file)
    module = importlib.util.module_from_spec(spec)
    # What processes that the user's code spawns load, as in a process that multiprocessing has spawned.
    sys.modules["__main__"] = module if is_single_file else ModuleType("__main__")

    def execute() -> None:
        if spec.parent and spec.parent != name:
            importlib.import_module(spec.parent)
        sys.modules[name] = module
        with suppress(EndOfLoading):
            spec.loader.exec_module(module)  # type: ignore[union-attr]

    guarded(f"loading {file.name} failed", root / file, execute)
    if is_single_file:
        module.__spec__ = None  # so that spawned processes find the file by its path
    return module


def local_files(root: Path, main: Path) -> list[str]:
    """Return the files below `root` that this process has imported, `main` first; [] if they are installed."""
    if _INSTALLED & {*root.parts}:
        return []
    imported = set[str]()
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.endswith(".py") and path.startswith(f"{root}{os.sep}"):
            file = Path(path).relative_to(root)
            if not _INSTALLED & {*file.parts} and not path.startswith(f"{sys.prefix}{os.sep}"):
                imported.add(file.as_posix())
    return [main.as_posix(), *sorted(imported - {main.as_posix()})]
