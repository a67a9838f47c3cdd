"""One setting as written, `key = value`: in a file, in Python or as text on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.schema import SHORT

_CLOSING = {"[": "]", '"': '"', "'": "'"}


@dataclass(frozen=True)
class Assignment:
    """The assignment `key` = `value`.

    Text from the command line is converted to the type of the key; a TOML value must already have that type.
    """

    key: str
    value: Any
    origin: str  # for messages: "--set ppo.lr=3", "run.toml [ppo] lr"
    folder: Path  # base of relative paths in the value
    is_text: bool


def split_commas(text: str, origin: str) -> list[str]:
    """Split at commas outside brackets and quotes, and strip the pieces; UsageError if a bracket or quote is open."""
    pieces = []
    piece = ""
    open_until = ""
    for char in text:
        if open_until:
            if char == open_until:
                open_until = ""
        elif char == ",":
            pieces.append(piece.strip())
            piece = ""
            continue
        elif char in _CLOSING:
            open_until = _CLOSING[char]
        piece += char
    if open_until:
        raise UsageError(f"{origin}: missing a closing {open_until}")
    return [*pieces, piece.strip()]


def read_assignment(text: str, origin: str) -> Assignment:
    """Parse `key=value` from the command line; raises UsageError for anything else."""
    key, equals_sign, value = text.partition("=")
    if not equals_sign or not key.strip():
        raise UsageError(f"{origin}: {text!r} is not key=value, as in ppo.lr=1e-3")
    key = key.strip()
    return Assignment(SHORT.get(key, key), value.strip(), origin, Path.cwd(), is_text=True)
