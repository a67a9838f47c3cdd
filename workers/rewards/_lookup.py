"""From a mode's name to its function: a file of this folder, or a user's own. Knows no formula.

Every error is a ValueError of one line that says what was asked, what was wrong with it and what would be right.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

import numpy as np

from esper_ab.contracts import catalog
from esper_ab.contracts.settings import RewardSettings
from workers.rewards._facts import Floats, StepFacts

RewardFunction = Callable[[StepFacts, RewardSettings], Floats]
_PACKAGE = "workers.rewards"
_FORMS = "path/to/file.py:function or module:function"


def find_reward(mode: str) -> RewardFunction:
    """The function of `mode`, its result checked at every call: [E] float64, or a ValueError that names it.

    `mode` is a file of workers/rewards ("shaped"), "path/to/file.py:function" (relative to the working directory), or
    "module:function" (installed). A user's file is executed, once per call of this function; it may import what lies
    beside it.
    """
    place, colon, attribute = mode.rpartition(":")
    if not colon:
        return _checked(_of_catalog(mode), mode)
    if not place or not attribute:
        raise ValueError(f"reward mode {mode!r}: expected {_FORMS}")
    module = _load_file(mode, Path(place)) if place.endswith(".py") else _load_module(mode, place)
    return _checked(_function(mode, module, attribute), mode)


def _of_catalog(mode: str) -> RewardFunction:
    names = catalog.names(_PACKAGE)
    if mode in names:
        function: RewardFunction = catalog.entry(_PACKAGE, mode, "reward")
        return function
    close = get_close_matches(mode, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"no reward mode {mode!r}: {hint}it is one of {', '.join(names)}, or {_FORMS}")


def _load_file(mode: str, path: Path) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise ValueError(f"reward mode {mode!r}: no file {str(path)!r}")
    root, name = _place(path)
    with _importable(root):
        return _load_module(mode, name) if name and _is_of(root, name) else _load_alone(mode, path)


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
def _importable(root: Path) -> Iterator[None]:
    """While entered, what lies in `root` can be imported, behind all that is installed; then it is forgotten.

    Another reward may have a neighbour of the same name elsewhere.
    """
    before = set(sys.modules)
    sys.path.append(str(root))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        del sys.path[len(sys.path) - 1 - sys.path[::-1].index(str(root))]
        new = {name: module for name, module in sys.modules.items() if name not in before}
        own = {root / name / "__init__.py" for name in new} | {root / f"{name}.py" for name in new}
        tops = {name for name, module in new.items() if _file(module) in own and "." not in name}
        for name in new:
            if name.partition(".")[0] in tops:
                del sys.modules[name]


def _file(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


def _load_alone(mode: str, path: Path) -> ModuleType:
    # Its own name, so that a user's "numpy.py" shadows nothing; registered, because dataclasses look themselves up.
    name = "user_reward_" + hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()
    loader = SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ValueError(f"reward mode {mode!r}: running {path.name} failed: {_one_line(error)}") from error
    return module


def _load_module(mode: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise ValueError(f"reward mode {mode!r}: importing {name!r} failed: {_one_line(error)}") from error


def _function(mode: str, module: ModuleType, attribute: str) -> RewardFunction:
    function = getattr(module, attribute, None)
    if not callable(function):
        members = inspect.getmembers(module, inspect.isfunction)
        own = [name for name, member in members if member.__module__ == module.__name__ and not name.startswith("_")]
        raise ValueError(f"reward mode {mode!r}: no function {attribute!r} there; it has {', '.join(own) or 'none'}")
    try:
        inspect.signature(function).bind("facts", "settings")
    except (TypeError, ValueError):
        raise ValueError(f"reward mode {mode!r}: it must take (facts, settings)") from None
    typed: RewardFunction = function
    return typed


def _checked(function: RewardFunction, mode: str) -> RewardFunction:
    @wraps(function)
    def checked(facts: StepFacts, settings: RewardSettings) -> Floats:
        try:
            result = function(facts, settings)
        except Exception as error:
            raise ValueError(f"reward mode {mode!r} failed: {_one_line(error)}") from error
        expected = facts.op.shape
        if not isinstance(result, np.ndarray):
            raise ValueError(f"reward mode {mode!r} returned {type(result).__name__}, not a numpy array")
        if result.shape != expected or result.dtype != np.float64:
            raise ValueError(
                f"reward mode {mode!r} returned shape {result.shape} {result.dtype}, not {expected} float64"
            )
        return result

    return checked


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
