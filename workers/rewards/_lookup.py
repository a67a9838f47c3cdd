"""From a mode's name to its function: a file of this folder, or a user's own. Knows no formula.

Every error is a ValueError of one line that says what was asked, what was wrong with it and what would be right.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
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
    "module:function" (importable). A user's file is executed, once per call of this function.
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
    if not path.is_file():
        raise ValueError(f"reward mode {mode!r}: no file {str(path.resolve())!r}")
    # Its own name, so that a user's "numpy.py" shadows nothing; registered, because dataclasses look themselves up.
    name = "user_reward_" + hashlib.blake2b(str(path.resolve()).encode(), digest_size=8).hexdigest()
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
