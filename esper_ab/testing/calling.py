"""Calls one of several functions of the user's, each found by its module or file. Its source is copied into a file."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def call(place: tuple[str, str, str, str], settings: Mapping[str, Any], run_values: Mapping[str, Any]) -> Any:
    """Call the function at `place`: module, file, the file's sha256 and name.

    It gets all settings, and those of the run's values that it has parameters for. ValueError if its file has changed.
    """
    module_name, file, sha256, name = place
    if hashlib.sha256(Path(file).read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{file} was changed while its runs trained; start the test again")
    function = loaded(module_name, file, name)
    parameters = inspect.signature(function).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return function(**settings, **{key: value for key, value in run_values.items() if takes_any or key in parameters})


def loaded(module_name: str, file: str, name: str) -> Callable[..., Any]:
    """Return a function from its module, or from its file where the name of the module leads elsewhere."""
    try:
        spec = importlib.util.find_spec(module_name)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == Path(file):
        function = getattr(importlib.import_module(module_name), name)
    else:
        spec = importlib.util.spec_from_file_location(Path(file).stem, file)
        assert spec is not None, "a Python file"
        assert spec.loader is not None, "likewise"
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # which definitions of dataclasses need
        spec.loader.exec_module(module)
        function = getattr(module, name)
    return function  # type: ignore[no-any-return]
