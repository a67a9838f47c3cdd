"""Packages as catalogues: each file whose name does not start with "_" is an entry, named by the stem of the file."""

from __future__ import annotations

import importlib
from typing import Any

from esper_ab.contracts.own_packages import folder


def names(package: str) -> tuple[str, ...]:
    """Return the entries of `package` ("esper_ab.launchers"), sorted, without importing any of them."""
    return tuple(sorted(path.stem for path in folder(package).glob("*.py") if not path.stem.startswith("_")))


def folders(package: str) -> tuple[str, ...]:
    """Return the packages in the folder of `package`, sorted, without importing any of them."""
    inner_folders = (init.parent.name for init in folder(package).glob("*/__init__.py"))
    return tuple(sorted(name for name in inner_folders if not name.startswith("_")))


def entry(package: str, name: str, attribute: str) -> Any:
    """Import entry `name` and return its `attribute`.

    If there is no such entry, raises KeyError with a message that lists the entries.
    """
    if name not in names(package):
        raise KeyError(f"no {name!r} in {package}; available: {', '.join(names(package))}")
    return getattr(importlib.import_module(f"{package}.{name}"), attribute)
