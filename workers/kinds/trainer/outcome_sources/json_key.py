"""A key of a JSON file, with a number or a list of numbers; dots in a key also name nested values."""

from __future__ import annotations

import json
from typing import Any

from esper_ab.contracts.plain_values import as_float
from workers.kinds.trainer.outcome_sources.left import Left, shortened
from workers.kinds.trainer.outcome_sources.values import Values


def read(file: str, key: str, left_output: Left) -> Values:
    """Return the number of `key`, or the numbers of a list; ValueError if there is none."""
    value = _read_value(file, key, left_output.text(file))
    name = f"{file}, {key}"
    if not isinstance(value, list):
        number = _number(f"{file}: {key}", value)
        return Values(1, lambda place: number, lambda place: name, f"{file}:{key}", single=True)
    if not value:
        raise ValueError(f"{file}: {key} is an empty list")

    def at(place: int) -> float:
        return _number(f"{file}: {key} [{place}]", value[place])

    return Values(len(value), at, lambda place: f"{name} [{place}]", f"{file}:{key}", needs_summary=True)


def _number(value_words: str, value: Any) -> float:
    if isinstance(value, str):
        raise ValueError(f"{value_words} is the text {value!r}, not a number; write it without quotes")
    if not isinstance(value, bool | int | float):
        raise ValueError(f"{value_words} is {type(value).__name__}, not a number")
    return as_float(value)


def has(file: str, key: str, left_output: Left) -> bool:
    """Whether the file has the key, whatever its value; a file that cannot be read has not."""
    try:
        _value_of(file, key, json.loads(left_output.text(file)))
    except (ValueError, RecursionError):
        return False
    return True


def _read_value(file: str, key: str, text: str) -> Any:
    """Return the value of a key; dots in a key also name nested values. A key that occurs twice is refused."""
    try:
        tree = json.loads(text, object_pairs_hook=_refuse_repeated_keys)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: not JSON: {error}") from None
    return _value_of(file, key, tree)


def _value_of(file: str, key: str, tree: Any) -> Any:
    if isinstance(tree, dict) and key in tree:
        return tree[key]
    for part in key.split("."):
        if not isinstance(tree, dict) or part not in tree:
            raise ValueError(f"{file}: no key {key!r}; available keys: {shortened(_keys(tree))}")
        tree = tree[part]
    return tree


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; ValueError if a key occurs twice, because one of its values would be ignored."""
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        entries[key] = value
    return entries


def _keys(tree: Any) -> list[str]:
    """Return the keys of a JSON object; those of an object in it are like "final.accuracy"."""
    if not isinstance(tree, dict):
        return []
    keys = list[str]()
    for key, value in tree.items():
        if isinstance(value, dict):
            keys += [f"{key}.{inner_key}" for inner_key in value]
        else:
            keys.append(key)
    return keys
