"""A user's own reward code: executed with what lies beside it, and told apart from a later state of itself.

Every error is a ValueError of one line that says what was asked and what was wrong with it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

from esper_ab.contracts.source_hash import source_sha256


@dataclass(frozen=True, kw_only=True)
class UserCode:
    """A module of a user's, executed, and the files that it was made of."""

    module: ModuleType
    root: Path  # the folder that its imports begin in
    files: tuple[str, ...]  # below `root`: its own first, then what it imported from there; empty without a source
    sha256: str  # of all files; "" without a source


def load(mode: str, place: str, *, kept: bool = False) -> UserCode:
    """Execute the file or import the installed module `place`, which `mode` names; `kept`: a copy of the file."""
    if not place.endswith(".py"):
        module = _load_module(mode, place)
        file = _file(module)
        return _of(module, Path() if file is None else file.parent, [] if file is None else [file])
    path = Path(place).resolve()
    if not path.is_file():
        raise ValueError(f"reward mode {mode!r}: no file {str(path)!r}")
    root, name = _place(path)
    beside: set[Path] = set()
    with _importable(root, kept, beside):
        module = _load_module(mode, name) if name and _is_of(root, name) else _load_alone(mode, path)
    return _of(module, root, [path, *sorted(beside - {path})])


def one_line(error: Exception) -> str:
    """Kind and words of an error, without line breaks."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def line_of(error: Exception, function: Callable[..., object]) -> str:
    """Where in the file of `function` the error came from, as " (mine.py, line 7)"; "" when it was not there."""
    file = inspect.getsourcefile(function)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({Path(file).name}, line {lines[-1]})" if file and lines else ""


def _of(module: ModuleType, root: Path, paths: list[Path]) -> UserCode:
    files = tuple(path.relative_to(root).as_posix() for path in paths)
    return UserCode(module=module, root=root, files=files, sha256=source_sha256(root, files) if files else "")


def _place(path: Path) -> tuple[Path, str]:
    """The folder that its imports begin in, and the name of a module of a package; "" for a file in none."""
    parts = [] if path.stem == "__init__" else [path.stem]
    root = path.parent
    while (root / "__init__.py").is_file():
        parts.append(root.name)
        root = root.parent
    return root, ".".join(reversed(parts)) if root != path.parent else ""


def _is_of(root: Path, name: str) -> bool:
    """Whether the package of module `name` is the one in `root`; an installed one of its name comes first."""
    top = name.partition(".")[0]
    spec = importlib.util.find_spec(top)
    return spec is not None and spec.origin == str(root / top / "__init__.py")


@contextmanager
def _importable(root: Path, kept: bool, files: set[Path]) -> Iterator[None]:
    """While entered, what lies in `root` can be imported; then it is forgotten, and `files` has what was imported.

    Another reward may have a neighbour of the same name elsewhere. A user's own folder comes behind all that is
    installed. `kept`: it has copies of what was once loaded and of nothing else, so it comes before the originals.
    """
    hidden = _take_out({path.stem for path in root.iterdir()}) if kept else {}
    before, bytecode = set(sys.modules), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # the folder is the user's, or has to stay as it was hashed
    sys.path.insert(0 if kept else len(sys.path), str(root))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = bytecode
        del sys.path[sys.path.index(str(root)) if kept else len(sys.path) - 1 - sys.path[::-1].index(str(root))]
        new = {name: module for name, module in sys.modules.items() if name not in before}
        own = {root / name / "__init__.py" for name in new} | {root / f"{name}.py" for name in new}
        tops = {name for name, module in new.items() if _file(module) in own and "." not in name}
        loaded = _take_out(tops)
        files |= {file for module in loaded.values() if (file := _file(module)) and file.is_relative_to(root)}
        sys.modules.update(hidden)


def _take_out(tops: set[str]) -> dict[str, ModuleType]:
    """Forget all modules of these names and of packages of these names; returns them."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in tops}


def _file(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def _load_alone(mode: str, path: Path) -> ModuleType:
    # Its own name, so that a user's "numpy.py" shadows nothing; registered, because dataclasses look themselves up.
    name = "user_reward_" + hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()
    loader = SourceFileLoader(name, str(path))
    spec = ModuleSpec(name, loader, origin=str(path))
    spec.has_location = True  # so that it knows its __file__
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ValueError(f"reward mode {mode!r}: running {path.name} failed: {one_line(error)}") from error
    return module


def _load_module(mode: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise ValueError(f"reward mode {mode!r}: importing {name!r} failed: {one_line(error)}") from error
