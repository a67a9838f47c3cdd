"""How large the values in a message may be: limits for msgpack, derived from the types of the messages.

They apply while msgpack builds lists, maps and strings from bytes. A single field may have narrower bounds; these are
checked afterwards, when the message is converted to its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

LARGEST_BYTES = 64 << 20  # of a message
_MOST_ENTRIES = 1 << 18  # of a list or map whose type declares no max_length
_MOST_CHARACTERS = 1 << 18  # of a string whose type declares no max_length
_UTF8_BYTES = 4  # at most, per character


class WireLimits(msgspec.Struct, frozen=True):
    """Limits of a union of messages."""

    entries: int  # of a list
    keys: int  # of a map
    text_bytes: int  # of a string
    # There is no limit for binary values, because no message has any.


def limits_of(messages: Any) -> WireLimits:
    """Return the smallest limits that admit every value of `messages`, a struct or a union of structs.

    Raises TypeError for a kind of value that has no limit here.
    """
    sizes = list(_sizes(inspect.type_info(messages)))
    return WireLimits(
        entries=_largest(sizes, "entries"),
        keys=_largest(sizes, "keys"),
        text_bytes=_UTF8_BYTES * _largest(sizes, "characters"),
    )


def _largest(sizes: Iterable[tuple[str, int]], unit: str) -> int:
    return max((size for size_unit, size in sizes if size_unit == unit), default=0)


def _inner(kind: inspect.Type) -> list[inspect.Type]:
    """Return the types directly inside `kind`; empty for one that is neither list nor map."""
    match kind:
        case inspect.UnionType(types=types):
            return list(types)
        case inspect.StructType(fields=fields):
            return [field.type for field in fields]
        case inspect.DictType(key_type=key, value_type=value):
            return [key, value]
        case inspect.VarTupleType(item_type=item):
            return [item]
        case (
            inspect.StrType()
            | inspect.IntType()
            | inspect.FloatType()
            | inspect.BoolType()
            | inspect.NoneType()
            | inspect.LiteralType()
        ):
            return []
    raise TypeError(f"a message has a value of type {type(kind).__name__}, for which the wire has no limit")


def _sizes(kind: inspect.Type) -> Iterator[tuple[str, int]]:
    """Yield what is counted ("entries", "keys" or "characters") and the largest number, for each value of a type."""
    match kind:
        case inspect.StructType(fields=fields, array_like=is_list):
            size = len(fields) if kind.tag is None else len(fields) + 1
            yield "entries" if is_list else "keys", size
            for field in fields:
                yield "characters", len(field.encode_name)
        case inspect.DictType(max_length=entry_limit):
            yield "keys", _MOST_ENTRIES if entry_limit is None else entry_limit
        case inspect.VarTupleType(max_length=entry_limit):
            yield "entries", _MOST_ENTRIES if entry_limit is None else entry_limit
        case inspect.StrType(max_length=entry_limit):
            yield "characters", _MOST_CHARACTERS if entry_limit is None else entry_limit
        case inspect.LiteralType(values=values):
            yield from (("characters", len(value)) for value in values if isinstance(value, str))
    for inner_type in _inner(kind):
        yield from _sizes(inner_type)
