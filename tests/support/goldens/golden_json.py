"""Round goldens, write them as JSON with readable diffs, and compare them."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "experiments"
_DIGITS = 9
_MACHINE_FINDINGS = (
    "dirty checkout",
    "throughput",
    "cold start",
)  # findings about the machine, not the records
_SOURCES = re.compile(r"\bsources [0-9a-f]{16}\b")
_LINE = 500  # characters


def plain(value: Any) -> Any:
    """Return the value as JSON types, without findings about speed and checkout and without the digest of the code."""
    text = msgspec.json.encode(msgspec.to_builtins(value)).decode()
    return _records_only(json.loads(_SOURCES.sub("sources DIGEST", text)))


def _records_only(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _records_only(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    kinds = ((item.get("kind") if isinstance(item, dict) else item) for item in value)
    return [_records_only(item) for item, kind in zip(value, kinds, strict=True) if kind not in _MACHINE_FINDINGS]


def rounded(value: Any) -> Any:
    """Return the value with all floats rounded to nine significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def differences(stored: Any, new_value: Any, path: str = "") -> Iterator[str]:
    """Yield every place where two plain values differ. Floats may differ by 1e-7, relatively."""
    if isinstance(stored, dict) and isinstance(new_value, dict):
        for key in dict.fromkeys((*stored, *new_value)):
            yield from differences(stored.get(key, "(nothing)"), new_value.get(key, "(nothing)"), f"{path}/{key}")
    elif isinstance(stored, list) and isinstance(new_value, list) and len(stored) == len(new_value):
        for place, values in enumerate(zip(stored, new_value, strict=True)):
            yield from differences(*values, f"{path}/{place}")
    elif isinstance(stored, float) and isinstance(new_value, int | float):
        if not math.isclose(stored, new_value, rel_tol=1e-7, abs_tol=1e-9):
            yield f"{path}: {stored!r} -> {new_value!r}"
    elif stored != new_value:
        yield f"{path}: {stored!r} -> {new_value!r}"


def encoded(golden: Mapping[str, Any]) -> str:
    """Return the JSON text of a golden: a short value on one line, every row of a table on its own line."""
    return "\n".join(_lines(golden)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    flat_text = json.dumps(value, ensure_ascii=False)
    if len(flat_text) <= _LINE or not isinstance(value, dict | list):
        yield flat_text
        return
    brackets = "{}" if isinstance(value, dict) else "[]"
    items = list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]
    yield brackets[0]
    for place, (key, item) in enumerate(items):
        lines = list(_lines(item))
        lines[0] = lines[0] if key is None else f"{json.dumps(key)}: {lines[0]}"
        lines[-1] += "," if place < len(items) - 1 else ""
        yield from (f" {line}" for line in lines)
    yield brackets[1]


def stored(name: str) -> dict[str, Any]:
    """Return the golden of this name."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def names() -> list[str]:
    """Return the names of all stored goldens."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))
