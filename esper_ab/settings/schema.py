"""All settings by dotted key, as declared by the fields of the settings structs, whose types and bounds they have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import EVERY_KIND, GroupSettings, Settings, Spec
from esper_ab.contracts.wording import did_you_mean
from esper_ab.settings.experiment import AskedExperiment

SHORT = {"reward": "reward.mode", "controller": "controller.name"}  # what may be written for a key


@dataclass(frozen=True, kw_only=True)
class Field:
    """One setting, described by its field in the settings structs."""

    key: str  # "ppo.lr"
    type: Any  # without its annotations
    bounded: Any  # with them
    default: Any
    spec: Spec
    kinds: tuple[str, ...]  # kinds of task that read it, as in Spec
    of_group: bool  # whether groups may differ in it
    flag: str  # its flag in Python's spelling, if it has one

    @property
    def of_trainers(self) -> bool:
        """Whether experiments with a user's trainer read it."""
        return not {EVERY_KIND, "trainer"}.isdisjoint(self.kinds)


def _fields(struct: type[Settings], *, is_of_group: bool, prefix: str = "") -> Iterator[Field]:
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, Settings):
            yield from _fields(field.type, is_of_group=is_of_group, prefix=f"{prefix}{field.name}.")
            continue
        metas = getattr(field.type, "__metadata__", ())
        spec = next((meta for meta in reversed(metas) if isinstance(meta, Spec)), Spec())
        yield Field(
            key=prefix + field.name,
            type=field.type.__origin__ if metas else field.type,
            bounded=field.type,
            default=field.default,
            spec=spec,
            kinds=spec.kinds or struct.kinds,
            of_group=is_of_group,
            flag=spec.flag or prefix + field.name,
        )


_PARAMS = "reward.params"
PARAM = f"{_PARAMS}."  # prefix of keys that a user's function declares
TRAINER = "trainer."  # prefix of a trainer's own settings, which its file or command declares
CODE = "code"  # key of the states of the code by group, also as a table
DECLARED = (PARAM, TRAINER)  # prefixes of keys that users' code declares
GROUP_FIELDS = {field.key: field for field in _fields(GroupSettings, is_of_group=True)}
EXPERIMENT_FIELDS = {field.key: field for field in _fields(AskedExperiment, is_of_group=False) if field.key != "groups"}
FIELDS = {key: field for key, field in GROUP_FIELDS.items() if f"{key}." not in DECLARED} | EXPERIMENT_FIELDS


def or_of_trainer(key: str) -> str:
    """Return the part of a message on a refused key that says how a trainer's own setting of that name is written."""
    name = next((short for short, full_key in SHORT.items() if full_key == key), key)
    return f"if it is a setting of your trainer, write {TRAINER}{name}"


def leave_out_later(table: dict[str, Any], fields: Mapping[str, Field]) -> None:
    """Delete from `table` the settings in `fields` that older versions lack, if they have their defaults.

    The values of `table` are settings and sections of settings.
    """
    for key, field in fields.items():
        section, dot, name = key.rpartition(".")
        settings = table[section] if dot else table
        if field.spec.later and settings[name] == field.default:
            del settings[name]


def refuse_unknown(subject: str, name: str, known_names: Collection[str], origin: str = "") -> None:
    """Raise UsageError, with similar names, if `name` is not in `known_names`."""
    if name not in known_names:
        raise UsageError(f"{origin}no {subject} {name!r}; {did_you_mean(name, known_names)}")


def of_group(key: str) -> bool:
    """Whether groups may differ in the setting `key`."""
    return key.startswith(DECLARED) or (key in FIELDS and FIELDS[key].of_group)
