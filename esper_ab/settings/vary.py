"""--vary KEY=V1,V2,…: one group per value of a setting, named KEY=VALUE."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.trainer import is_command
from esper_ab.settings.assignments import Assignment, split_commas
from esper_ab.settings.schema import FIELDS, SHORT, TRAINER

_NO_NAME = re.compile(r"[^A-Za-z0-9_.=+-]+")  # not allowed in a group's name
_NAME_CHARS = 64


def read_vary(text: str, trainer: str) -> dict[str, list[Assignment]]:
    """Parse --vary KEY=V1,V2,… into one group KEY=VALUE per value; with a trainer, KEY needs no `trainer.` prefix."""
    key, equals_sign, values = (part.strip() for part in text.partition("="))
    origin = f"--vary {text}"
    pieces = []
    if equals_sign and key:
        pieces = split_commas(values, origin)
    if len(pieces) < 2 or not all(pieces):
        raise UsageError(f"{origin}: expected a key and at least two values, as in lr=3e-4,1e-3")
    full_key = SHORT.get(key, key)
    if trainer and ("." not in key or (is_command(trainer) and key not in FIELDS and not key.startswith(TRAINER))):
        full_key = f"{TRAINER}{key}"
    groups = dict[str, list[Assignment]]()
    for piece in pieces:
        name = group_name({key: piece})
        if name in groups:
            raise UsageError(f"{origin}: {_why_same_name(name, full_key, str(groups[name][0].value), piece)}")
        groups[name] = [Assignment(full_key, piece, origin, Path.cwd(), is_text=True)]
    return groups


def group_name(settings: Mapping[str, object]) -> str:
    """Return the name of a group with these settings, as in "lr=0.1" and "lr=0.1+steps=5"."""
    return "+".join(f"{key}={_NO_NAME.sub('-', str(value))}" for key, value in settings.items())[:_NAME_CHARS]


def _why_same_name(name: str, key: str, first_value: str, second_value: str) -> str:
    """Say why two values of --vary give the same group name, and what to write instead."""
    if first_value == second_value:
        return f"the value {first_value} is given twice; remove one"
    return (
        f"two groups would be named {name}, because a name keeps only the letters a to z, digits and _.=+-, and at "
        f"most {_NAME_CHARS} characters; name the groups yourself, as in --group first:{key}={first_value} "
        f"--group second:{key}={second_value}"
    )
