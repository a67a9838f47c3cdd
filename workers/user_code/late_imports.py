"""Find the modules beside a user's file when the file imports them late: in a function, long after it was loaded.

A file is loaded with its folder importable, and its neighbours are unloaded afterwards (`loading`). When code of that
file later imports a module, the module that was imported while loading is found again; otherwise the file's copy, then
its own folder are searched. Whatever is installed comes first; the working directory comes last.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class _UsersFile:
    """A loaded file: its neighbours by name, and the folders from which they come."""

    neighbours: Mapping[str, ModuleType]
    folders: tuple[str, ...]


_BY_GLOBALS: dict[int, _UsersFile] = {}  # by the id of a module's globals; `loading` keeps the modules
_FOUND: set[str] = set()  # the names found here


def register(module: ModuleType, neighbours: Mapping[str, ModuleType], folders: Sequence[Path]) -> None:
    """From now on, find modules for `module` and its `neighbours`, in the order of `folders`."""
    users_file = _UsersFile(neighbours, tuple(map(str, folders)))
    _BY_GLOBALS.update({id(vars(loaded_module)): users_file for loaded_module in (module, *neighbours.values())})
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def forget() -> None:
    """Unload what was found here, so that the next file finds neighbours of its own."""
    for name in list(sys.modules):
        if name.partition(".")[0] in _FOUND:
            del sys.modules[name]
    _FOUND.clear()


def without_working_directory(path: Sequence[str]) -> list[str]:
    """Return the entries of `path` other than the working directory."""
    working_folder = Path().resolve()
    return [entry for entry in path if Path(entry).resolve() != working_folder]


class _Finder(MetaPathFinder):
    """Answers imports that code of a registered file causes."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        users_file = _importing()
        if users_file is None:
            return None
        package, _, _ = name.rpartition(".")
        top = name.partition(".")[0]
        if name in users_file.neighbours:
            spec: ModuleSpec | None = ModuleSpec(name, _AsBefore(users_file.neighbours[name]))
        elif path is None:
            spec = None if _is_installed(name) else PathFinder.find_spec(name, users_file.folders)
        elif top in _FOUND or top in users_file.neighbours:
            lower_folders = [str(Path(folder, *package.split("."))) for folder in users_file.folders]
            spec = PathFinder.find_spec(name, [*path, *lower_folders])
        else:
            spec = None
        if spec is not None:
            _FOUND.add(top)
        return spec


class _AsBefore(Loader):
    """Loads a module that has already been executed."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, _spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has replaced it


_FINDER = _Finder()


def _importing() -> _UsersFile | None:
    """Return the registered file whose code runs on this thread."""
    frame = sys._getframe(1)
    while frame is not None:
        users_file = _BY_GLOBALS.get(id(frame.f_globals))
        if users_file is not None:
            return users_file
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _is_installed(name: str) -> bool:
    if BuiltinImporter.find_spec(name) or FrozenImporter.find_spec(name):
        return True
    spec = PathFinder.find_spec(name, without_working_directory(sys.path))
    return spec is not None and spec.origin is not None  # a folder without __init__.py hides no module
