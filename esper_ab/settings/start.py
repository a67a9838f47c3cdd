"""The start of the policies in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from esper_ab.contracts.settings import PolicySettings
from esper_ab.settings.experiment import Group

UNIFORM = "uniform over the valid ops"


def start(settings: PolicySettings) -> str:
    """Say where an untrained policy starts: "uniform over the valid ops", or with which biases."""
    biases = {
        name.removeprefix("bias_"): value
        for name, value in msgspec.structs.asdict(settings).items()
        if name.startswith("bias_") and value != 0.0
    }
    return ", ".join(f"{op} {bias:+g}" for op, bias in biases.items()) or UNIFORM


def starts(groups: Iterable[Group]) -> dict[str, list[str]]:
    """Return the learning groups by their start."""
    found: dict[str, list[str]] = {}
    for group in groups:
        if group.settings.has_policy:
            found.setdefault(start(group.settings.policy), []).append(group.name)
    return found
