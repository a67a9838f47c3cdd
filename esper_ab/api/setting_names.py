"""Convert settings written in Python to dotted keys. Pure; knows no key."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from esper_ab.contracts.errors import UsageError

Overrides: TypeAlias = Mapping[str, Any]  # settings by key: "ppo.lr", "ppo__lr", or nested as in a TOML file


def dotted(settings: Overrides, prefix: str = "") -> dict[str, Any]:
    """Flatten settings to dotted keys: `{"ppo__lr": 1}` and `{"ppo": {"lr": 1}}` become `{"ppo.lr": 1}`.

    Raises UsageError if a key is not text, if a key is set twice, or if settings contain themselves.
    """
    try:
        return _flattened(settings, prefix)
    except RecursionError:
        raise UsageError("settings must not contain themselves") from None


def _flattened(settings: Overrides, prefix: str) -> dict[str, Any]:
    if not isinstance(settings, Mapping):
        raise UsageError(f"settings must be given by key, as in {{'ppo.lr': 1e-3}}, not {settings!r}")
    flat_settings: dict[str, Any] = {}
    for written_key, value in settings.items():
        if not isinstance(written_key, str):
            raise UsageError(f"the key of a setting must be text, as in 'ppo.lr', not {written_key!r}")
        key = prefix + written_key.replace("__", ".")
        if isinstance(value, Mapping):
            inner_settings = _flattened(value, f"{key}.")
        else:
            inner_settings = {key: value}
        for name, setting in inner_settings.items():
            if name in flat_settings:
                raise UsageError(f"{name} is set twice")
            flat_settings[name] = plain(setting)
    return flat_settings


def plain(value: Any) -> Any:
    """Convert paths to text, and numbers of NumPy and the like to Python numbers, also in lists.

    Keep all other values.
    """
    if isinstance(value, list | tuple):
        if type(value) in (list, tuple):
            return type(value)(map(plain, value))
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float(value)
    return value
