"""A folder is the catalog: every file of a package that does not begin with "_" is an entry, named by its stem."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from esper_ab.contracts.own_packages import folder


def names(package: str) -> tuple[str, ...]:
    """Entries of `package` ("workers.rewards"), sorted; nothing in it is imported."""
    return tuple(sorted(path.stem for path in folder(package).glob("*.py") if not path.stem.startswith("_")))


def file(package: str, name: str) -> Path:
    """Where entry `name` is, or would be."""
    return folder(package) / f"{name}.py"


def entry(package: str, name: str, attribute: str) -> Any:
    """The `attribute` of entry `name`; KeyError naming what exists when there is no such entry."""
    if name not in names(package):
        raise KeyError(f"no {name!r} in {package}; it has {', '.join(names(package))}")
    return getattr(importlib.import_module(f"{package}.{name}"), attribute)
