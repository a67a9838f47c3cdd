"""The initial bias of the policies, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from esper_ab.contracts.settings import PolicySettings
from esper_ab.settings.experiment import Group

UNIFORM = "uniform over the valid ops"


def start(settings: PolicySettings) -> str:
    """Describe the initial bias of an untrained policy: "uniform over the valid ops", or its biases."""
    biases = {
        name.removeprefix("bias_"): value
        for name, value in msgspec.structs.asdict(settings).items()
        if name.startswith("bias_") and value != 0.0
    }
    return ", ".join(f"{op} {bias:+g}" for op, bias in biases.items()) or UNIFORM


def starts(groups: Iterable[Group]) -> dict[str, list[str]]:
    """Return a mapping from each initial bias, in words, to the names of the learning groups that have it."""
    groups_by_start: dict[str, list[str]] = {}
    for group in groups:
        if group.settings.has_policy:
            groups_by_start.setdefault(start(group.settings.policy), []).append(group.name)
    return groups_by_start
