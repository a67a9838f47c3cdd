"""Makes this process work in the files of one state of a user's code, for trainers that run in our own process.

The process changes to the folder of the state and imports modules from there first, before installed packages. Modules
of the previous state are unloaded. Threads share folder and modules, so such a process trains one run at a time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_INSTALLED = {"site-packages", "dist-packages"}
_first_folders: list[str] = []
_restorers: list[Callable[[], None]] = []


def first_folders() -> tuple[str, ...]:
    """Return the folders whose modules come before those that are installed; () outside any state."""
    return tuple(_first_folders)


def enter(folder: Path, module_folders: Sequence[str], moved: Callable[[str], str]) -> None:
    """Leave the previous state, and work in `folder`; `moved` gives the state's path for one in the user's folder."""
    leave()
    directory = Path.cwd()
    path = list(sys.path)
    search_path = os.environ.get("PYTHONPATH")

    def restore() -> None:
        _unload([*module_folders, str(folder)])
        os.chdir(directory)
        sys.path[:] = path
        _set_search_path(search_path)

    _restorers.append(restore)
    os.chdir(folder)
    _first_folders[:] = module_folders
    sys.path[:] = [*module_folders, *moved_path(path, moved)]
    _set_search_path(os.pathsep.join([*module_folders, *filter(None, [search_path])]))


def leave() -> None:
    """Work where the process worked before it entered a state."""
    _first_folders.clear()
    while _restorers:
        _restorers.pop()()


def moved_path(path: Sequence[str], moved: Callable[[str], str]) -> list[str]:
    """Return the entries of a search path, with the state's folder for each of the user's; installed ones stay."""
    entries = []
    for entry in path:
        is_installed = _INSTALLED & {*Path(entry).parts} or Path(entry).is_relative_to(sys.prefix)
        new_entry = entry if is_installed else moved(entry)
        if new_entry == entry or Path(new_entry).is_dir():
            entries.append(new_entry)
    return entries


def _set_search_path(text: str | None) -> None:
    if text is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = text


def _unload(folders: Sequence[str]) -> None:
    """Forget the modules whose files lie below one of the folders."""
    prefixes = tuple(f"{folder}{os.sep}" for folder in folders)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        places = [file] if isinstance(file, str) else [str(entry) for entry in getattr(module, "__path__", ())]
        if any(place.startswith(prefixes) for place in places):
            del sys.modules[name]
