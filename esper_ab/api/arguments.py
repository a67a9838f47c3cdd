"""Check arguments of Python functions as strictly as flags: every name must exist, and every value have its type."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from esper_ab.api.setting_names import plain
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import did_you_mean
from esper_ab.trackers.settings import Tracking


def arguments(function: str, given: Mapping[str, Any], declared: type) -> dict[str, Any]:
    """Convert the arguments `given` to `function` to the types in the TypedDict `declared`.

    UsageError if that fails.
    """
    kinds = get_type_hints(declared, include_extras=True)
    for name in given:
        if name not in kinds:
            raise UsageError(f"{function}: no argument {name!r}; {did_you_mean(name, kinds)}")
    return {name: typed(name, value, kinds[name]) for name, value in given.items()}


def typed(what: str, given: Any, kind: Any) -> Any:
    """Convert an argument to the type `kind`; UsageError if the argument does not fit."""
    value = given
    if get_origin(kind) in (tuple, Sequence) and isinstance(given, Iterable) and not isinstance(given, str):
        value = list(given)
    try:
        return msgspec.convert(plain(value), kind)
    except msgspec.ValidationError as error:
        reason = str(error).replace("`array`", "a list").replace("`", "")
        raise UsageError(f"{what}={given!r}: {reason[0].lower()}{reason[1:]}") from None


def path_of(what: str, given: Any, otherwise: str = "") -> Path:
    """Return the path given as an argument; UsageError if it is not one. `otherwise`: what else fits, "a plan or "."""
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        printable = visible_line(repr(given), 60)
        raise UsageError(f"{what}={printable}: expected {otherwise}a path, as text or as a pathlib.Path")
    return Path(given)


def change_tracking(before: Tracking, changes: Mapping[str, Any]) -> Tracking:
    """Return `before` with `changes` applied; UsageError for an unknown name or a wrong value."""
    not_here = ("description", "tags")  # set by the experiment and its variants
    kinds = {field.name: field.type for field in msgspec.structs.fields(Tracking) if field.name not in not_here}
    for name, value in changes.items():
        if name not in kinds:
            raise UsageError(f"set_tracking: no {name!r}; {did_you_mean(name, kinds)}")
        try:
            msgspec.convert(value, type=kinds[name], strict=True)
        except msgspec.ValidationError:
            right = {bool: "True or False", str: "text"}.get(kinds[name]) or ", ".join(get_args(kinds[name]))
            raise UsageError(f"set_tracking: {name}={value!r}: expected {right}") from None
    return msgspec.structs.replace(before, **changes)
