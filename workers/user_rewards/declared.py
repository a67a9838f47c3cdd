"""What a user's code declares by annotations: the struct of its constants or settings, with its types resolved.

Every error is a ValueError of one line that begins with `what`, as the caller calls the code, and names the fault.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import msgspec
from msgspec.structs import FieldInfo

from esper_ab.contracts.errors import USER_FAULTS
from workers.user_rewards.user_code import known, one_line

_REMEDY = "import what they name outside of `if TYPE_CHECKING:`"


def annotation_of(function: Callable[..., Any], index: int, module: ModuleType, what: str) -> Any:
    """Return what parameter `index` of a function that `module` has is annotated with.

    Annotations of other parameters are nobody's concern: they may hold names that only a type checker knows.
    """
    parameter = list(inspect.signature(function).parameters.values())[index]
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    names = getattr(inspect.unwrap(function), "__globals__", vars(module))
    with _resolved(module, f"{what}: the annotation of {parameter.name!r}"):
        return eval(parameter.annotation, names)


def fields_of(struct: type[msgspec.Struct], module: ModuleType, what: str) -> tuple[FieldInfo, ...]:
    """Return the fields of a struct that `module` has; from then on msgspec converts to it wherever it is asked to."""
    with _resolved(module, f"{what}: the annotations of {struct.__name__}"):
        fields = msgspec.structs.fields(struct)
        msgspec.json.Decoder(struct)  # resolves what nested structs are annotated with, and msgspec keeps all types
    return fields


@contextmanager
def _resolved(module: ModuleType, what: str) -> Iterator[None]:
    """Evaluate annotations of `module`, and of those that it imported from beside it, while entered."""
    try:
        with known(module):
            yield
    except USER_FAULTS as error:
        remedy = f"; {_REMEDY}" if isinstance(error, NameError) else ""
        raise ValueError(f"{what} cannot be resolved: {one_line(error)}{remedy}") from error
