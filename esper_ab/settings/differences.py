"""Settings in which groups differ, and which of these settings can matter. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

import msgspec

from esper_ab.contracts.plain_values import as_text
from esper_ab.contracts.settings import Settings
from esper_ab.settings.experiment import Group

CODE = "code"  # the key of the state of the code
WHICH_FUNCTION = "which_function"  # a trainer's setting: which of two functions is called
OF_CODE = frozenset({CODE, f"trainer.{WHICH_FUNCTION}"})  # keys whose difference is one of code
NO_STATES: Mapping[str, str] = MappingProxyType({})  # every group has the same code
_LEARNING_ONLY = ("policy.", "ppo.", "reward.")  # read by the controller ppo only


class Difference(Settings, frozen=True, kw_only=True):
    """One setting in which the groups differ, with each group's value as text."""

    key: str  # "reward.mode"
    values: dict[str, str]  # group -> value


def flat(group: Group) -> dict[str, str]:
    """Return every setting of a group as text, by dotted key."""
    texts = {}
    for section, table in msgspec.to_builtins(group.settings).items():
        for key, value in table.items():
            texts[f"{section}.{key}"] = as_text(value)
    return texts


def differences(groups: Sequence[Group], states_of_code: Mapping[str, str] = NO_STATES) -> tuple[Difference, ...]:
    """Return the settings that differ between groups: the state of the code, then those in the order of the schema."""
    tables = {group.name: flat(group) for group in groups}
    if states_of_code:
        tables = {name: {CODE: states_of_code[name], **table} for name, table in tables.items()}
    keys = dict.fromkeys(key for table in tables.values() for key in table)
    differing_keys = []
    for key in keys:
        values = {name: table.get(key, "") for name, table in tables.items()}  # a state may lack a setting of another
        if len(set(values.values())) > 1:
            differing_keys.append(Difference(key=key, values=values))
    return tuple(differing_keys)


def axes(a: Group, b: Group, states_of_code: Mapping[str, str] = NO_STATES) -> tuple[str, ...]:
    """Return the keys in which two groups differ and which at least one of the two reads.

    A group that does not learn reads no `policy.`, `ppo.` or `reward.` keys.
    """
    both_learn = a.settings.controller.name == "ppo" and b.settings.controller.name == "ppo"
    keys = [difference.key for difference in differences((a, b), states_of_code)]
    if not both_learn:
        keys = [key for key in keys if not key.startswith(_LEARNING_ONLY)]
    if "reward.mode" in keys and "reward.params" in keys:
        keys.remove("reward.params")  # implied by the mode
    return tuple(keys)


def pairs_by_axes(
    groups: Sequence[Group], states_of_code: Mapping[str, str] = NO_STATES
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the `axes` of every pair of groups, by the names of both groups."""
    return {(a.name, b.name): axes(a, b, states_of_code) for a, b in combinations(groups, 2)}
