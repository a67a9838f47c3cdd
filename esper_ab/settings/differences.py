"""In which settings groups differ, and the start of their policies, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import msgspec

from esper_ab.contracts.settings import PolicySettings, Settings, as_text
from esper_ab.settings.experiment import Group

# --- differences -----------------------------------------------------------------------------------------------------
# In which settings groups differ, and by how many of those that can matter. Pure.


_LEARNING_ONLY = ("policy.", "ppo.", "reward.")  # read by no controller but ppo


class Difference(Settings, frozen=True, kw_only=True):
    """One setting in which the groups differ, with each group's value as text."""

    key: str  # "reward.mode"
    values: dict[str, str]  # group -> value


def flat(group: Group) -> dict[str, str]:
    """Every setting of a group as text, by dotted key."""
    sections = msgspec.to_builtins(group.settings)
    return {f"{section}.{key}": as_text(value) for section, keys in sections.items() for key, value in keys.items()}


def differences(groups: Sequence[Group]) -> tuple[Difference, ...]:
    """Settings that are not the same in all groups, in the order of the schema."""
    tables = {group.name: flat(group) for group in groups}
    keys = next(iter(tables.values()))
    return tuple(
        Difference(key=key, values={name: table[key] for name, table in tables.items()})
        for key in keys
        if len({table[key] for table in tables.values()}) > 1
    )


def axes(a: Group, b: Group) -> tuple[str, ...]:
    """Keys in which two groups differ and that one of them reads: a controller that does not learn reads no reward."""
    learns = {"ppo"} == {a.settings.controller.name, b.settings.controller.name}
    keys = (difference.key for difference in differences((a, b)))
    found = [key for key in keys if learns or not key.startswith(_LEARNING_ONLY)]
    return tuple(key for key in found if key != "reward.params" or "reward.mode" not in found)  # they go with it


def pairs_by_axes(groups: Sequence[Group]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Axes of every pair of groups, by their names."""
    return {(a.name, b.name): axes(a, b) for a, b in combinations(groups, 2)}


# --- start -----------------------------------------------------------------------------------------------------------
# The start of the policies in words. Pure.


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
