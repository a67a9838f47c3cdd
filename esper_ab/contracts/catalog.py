"""A folder is the catalog: every file of a package that does not begin with "_" is an entry, named by its stem."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any


def names(package: str) -> tuple[str, ...]:
    """Entries of `package` ("workers.rewards"), sorted; nothing in it is imported."""
    return tuple(sorted(path.stem for path in _folder(package).glob("*.py") if not path.stem.startswith("_")))


def file(package: str, name: str) -> Path:
    """Where entry `name` is, or would be."""
    return _folder(package) / f"{name}.py"


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"no package {package!r}")
    return Path(next(iter(spec.submodule_search_locations)))


def entry(package: str, name: str, attribute: str) -> Any:
    """The `attribute` of entry `name`; KeyError naming what exists when there is no such entry."""
    if name not in names(package):
        raise KeyError(f"no {name!r} in {package}; it has {', '.join(names(package))}")
    return getattr(importlib.import_module(f"{package}.{name}"), attribute)
