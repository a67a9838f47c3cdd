"""Settings in which groups differ, and which of these settings can matter. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec

from esper_ab.contracts.plain_values import as_text
from esper_ab.contracts.settings import (
    Settings,
)
from esper_ab.settings.experiment import Group

_LEARNING_ONLY = ("policy.", "ppo.", "reward.")  # read by the controller ppo only


class Difference(Settings, frozen=True, kw_only=True):
    """One setting in which the groups differ, with each group's value as text."""

    key: str  # "reward.mode"
    values: dict[str, str]  # group -> value


def flat(group: Group) -> dict[str, str]:
    """Return every setting of a group as text, by dotted key."""
    sections = msgspec.to_builtins(group.settings)
    return {f"{section}.{key}": as_text(value) for section, keys in sections.items() for key, value in keys.items()}


def differences(groups: Sequence[Group]) -> tuple[Difference, ...]:
    """Return the settings that differ between groups, in the order of the schema."""
    tables = {group.name: flat(group) for group in groups}
    keys = next(iter(tables.values()))
    return tuple(
        Difference(key=key, values={name: table[key] for name, table in tables.items()})
        for key in keys
        if len({table[key] for table in tables.values()}) > 1
    )


def axes(a: Group, b: Group) -> tuple[str, ...]:
    """Return the keys in which two groups differ and which at least one of the two reads.

    A group that does not learn reads no `policy.`, `ppo.` or `reward.` keys.
    """
    learns = {"ppo"} == {a.settings.controller.name, b.settings.controller.name}
    keys = (difference.key for difference in differences((a, b)))
    found = [key for key in keys if learns or not key.startswith(_LEARNING_ONLY)]
    return tuple(key for key in found if key != "reward.params" or "reward.mode" not in found)  # implied by the mode


def pairs_by_axes(groups: Sequence[Group]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the `axes` of every pair of groups, by the names of both groups."""
    return {(a.name, b.name): axes(a, b) for a, b in combinations(groups, 2)}
