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


def arguments(function: str, given_arguments: Mapping[str, Any], declared_types: type) -> dict[str, Any]:
    """Convert `given_arguments` of `function` to the types in the TypedDict `declared_types`.

    UsageError if that fails.
    """
    kinds = get_type_hints(declared_types, include_extras=True)
    for name in given_arguments:
        if name not in kinds:
            raise UsageError(f"{function}: no argument {name!r}; {did_you_mean(name, kinds)}")
    return {name: typed(name, value, kinds[name]) for name, value in given_arguments.items()}


def typed(argument_name: str, given_value: Any, kind: Any) -> Any:
    """Convert an argument to the type `kind`; UsageError if the argument does not fit."""
    value = given_value
    if Path in get_args(kind):
        return None if value is None else path_of(argument_name, value)
    if get_origin(kind) in (tuple, Sequence) and isinstance(given_value, Iterable) and not isinstance(given_value, str):
        value = list(given_value)
    try:
        return msgspec.convert(plain(value), kind)
    except msgspec.ValidationError as error:
        reason = str(error).replace("`array`", "a list").replace("`", "")
        raise UsageError(f"{argument_name}={given_value!r}: {reason[0].lower()}{reason[1:]}") from None


def path_of(argument_name: str, given_value: Any, alternative: str = "") -> Path:
    """Return the path given as an argument; UsageError if it is not one. `alternative`: as in "a plan or "."""
    if not isinstance(given_value, str | os.PathLike) or not isinstance(os.fspath(given_value), str):
        printable_value = visible_line(repr(given_value), 60)
        raise UsageError(
            f"{argument_name}={printable_value}: expected {alternative}a path, as text or as a pathlib.Path"
        )
    return Path(given_value)


def change_tracking(tracking_before: Tracking, changes: Mapping[str, Any]) -> Tracking:
    """Return `tracking_before` with `changes` applied; UsageError for an unknown name or a wrong value."""
    excluded_names = ("description", "tags")  # set by the experiment and its variants
    kinds = {field.name: field.type for field in msgspec.structs.fields(Tracking) if field.name not in excluded_names}
    for name, value in changes.items():
        if name not in kinds:
            raise UsageError(f"set_tracking: no {name!r}; {did_you_mean(name, kinds)}")
        try:
            msgspec.convert(value, type=kinds[name], strict=True)
        except msgspec.ValidationError:
            valid_words = {bool: "True or False", str: "text"}.get(kinds[name]) or ", ".join(get_args(kinds[name]))
            raise UsageError(f"set_tracking: {name}={value!r}: expected {valid_words}") from None
    return msgspec.structs.replace(tracking_before, **changes)
