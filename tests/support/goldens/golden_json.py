"""Goldens as JSON: rounded, written so that a change of a file can be read, and compared."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "experiments"
_DIGITS = 9
_OF_THE_DAY = ("dirty checkout", "throughput", "cold start")  # kinds of findings: of the machine, not of the records
_SOURCES = re.compile(r"\bsources [0-9a-f]{16}\b")
_LINE = 500  # characters


def plain(value: Any) -> Any:
    """The same as JSON has it, without findings on speed and checkout and without the digest of the code."""
    text = msgspec.json.encode(msgspec.to_builtins(value)).decode()
    return _of_records(json.loads(_SOURCES.sub("sources DIGEST", text)))


def _of_records(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _of_records(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    kinds = ((one.get("kind") if isinstance(one, dict) else one) for one in value)
    return [_of_records(one) for one, kind in zip(value, kinds, strict=True) if kind not in _OF_THE_DAY]


def rounded(value: Any) -> Any:
    """The same with all floats to nine significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def differences(stored: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield every place where two plain values differ; floats by more than the last of their digits."""
    if isinstance(stored, dict) and isinstance(found, dict):
        for key in dict.fromkeys((*stored, *found)):
            yield from differences(stored.get(key, "(nothing)"), found.get(key, "(nothing)"), f"{path}/{key}")
    elif isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        for place, both in enumerate(zip(stored, found, strict=True)):
            yield from differences(*both, f"{path}/{place}")
    elif isinstance(stored, float) and isinstance(found, int | float):
        if not math.isclose(stored, found, rel_tol=1e-7, abs_tol=1e-9):
            yield f"{path}: {stored!r} -> {found!r}"
    elif stored != found:
        yield f"{path}: {stored!r} -> {found!r}"


def encoded(golden: Mapping[str, Any]) -> str:
    """Write a value that is short on one line, and the rows of a table on one each."""
    return "\n".join(_lines(golden)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) <= _LINE or not isinstance(value, dict | list):
        yield flat
        return
    ends = "{}" if isinstance(value, dict) else "[]"
    items = list(value.items()) if isinstance(value, dict) else [(None, one) for one in value]
    yield ends[0]
    for place, (key, one) in enumerate(items):
        lines = list(_lines(one))
        lines[0] = lines[0] if key is None else f"{json.dumps(key)}: {lines[0]}"
        lines[-1] += "," if place < len(items) - 1 else ""
        yield from (f" {line}" for line in lines)
    yield ends[1]


def stored(name: str) -> dict[str, Any]:
    """The golden of this name."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def names() -> list[str]:
    """Return the names of all stored goldens."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))
