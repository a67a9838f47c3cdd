"""What a user's function returned, as the points of a curve: numbers by name. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from esper_ab.contracts.plain_values import as_float


def read_points(name: str, returned_value: Any) -> list[dict[str, float]]:
    """Return what a function has returned as points with numbers by name; the name of a plain number is ""."""
    if inspect.isgenerator(returned_value) or inspect.iscoroutine(returned_value):
        raise ValueError(f"{name} returned a {type(returned_value).__name__}; return the outcome, a number")
    value_words = f"what {name} returned"
    value = _plain(returned_value)
    if isinstance(value, list):
        points = [_point(f"item {index} of {value_words}", _plain(item)) for index, item in enumerate(value)]
    elif isinstance(value, Mapping) and any(isinstance(_plain(part), list) for part in value.values()):
        points = _columns(value_words, value)
    else:
        points = [_point(value_words, value)]
    if not points:
        raise ValueError(f"{name} returned an empty list, so there is no outcome")
    if any(point.keys() != points[0].keys() for point in points):
        raise ValueError(f"the items that {name} returned have different names; give each the same")
    return points


def _plain(value: Any) -> Any:
    """Return an array, a tensor or a series as a list or a number, and a tuple as a list."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _columns(value_words: str, lists: Mapping[Any, Any]) -> list[dict[str, float]]:
    """Return the points of a dict of lists, as Keras' History has."""
    plain_lists = {str(key): _plain(value) for key, value in lists.items()}
    lengths = {len(value) if isinstance(value, list) else None for value in plain_lists.values()}
    if len(lengths) > 1:
        raise ValueError(
            f"{value_words} has lists of different lengths, or lists and numbers; make them lists of one length"
        )
    rows = zip(*plain_lists.values(), strict=True)
    return [
        _point(f"item {index} of {value_words}", dict(zip(plain_lists, row, strict=True)))
        for index, row in enumerate(rows)
    ]


def _point(value_words: str, value: Any) -> dict[str, float]:
    if isinstance(value, Mapping):
        if not value:
            raise ValueError(f"{value_words} is an empty dict, so there is no outcome")
        return {str(key): _number(f"{key!r} of {value_words}", _plain(part)) for key, part in value.items()}
    return {"": _number(value_words, value)}


def _number(value_words: str, value: Any) -> float:
    if value is None or isinstance(value, str | bytes):
        raise ValueError(f"{value_words} is {value!r}, not a number")
    try:
        return as_float(value)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{value_words} is {type(value).__name__}, not a number") from None
