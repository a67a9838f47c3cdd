"""Arguments of the functions that Python calls, checked as flags are: names that exist, values of their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_origin, get_type_hints

import msgspec

from esper_ab.api.setting_names import plain
from esper_ab.contracts.errors import UsageError
from esper_ab.settings.assignments import did_you_mean


def arguments(function: str, given: Mapping[str, Any], declared: type) -> dict[str, Any]:
    """Return the arguments `given` to `function`, each as its type in the TypedDict `declared`; UsageError."""
    kinds = get_type_hints(declared, include_extras=True)
    for name in given:
        if name not in kinds:
            raise UsageError(f"{function}: no argument {name!r}; {did_you_mean(name, kinds)}")
    return {name: typed(name, value, kinds[name]) for name, value in given.items()}


def typed(what: str, given: Any, kind: Any) -> Any:
    """Return an argument as what it has to be; UsageError where it is something else."""
    listed = get_origin(kind) in (tuple, Sequence) and isinstance(given, Iterable) and not isinstance(given, str)
    try:
        return msgspec.convert(plain(list(given) if listed else given), kind)
    except msgspec.ValidationError as error:
        said = str(error).replace("`array`", "a list").replace("`", "")
        raise UsageError(f"{what}={given!r}: {said[0].lower()}{said[1:]}") from None
