"""Turn a Request into an AskedExperiment with complete groups; a setting without effect is an error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.records import GROUP_NAME
from esper_ab.contracts.run_files import plain_group
from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.trainer import TRAINER_PREFIX
from esper_ab.contracts.wording import did_you_mean
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.experiment import AskedExperiment, Group, refuse_too_many
from esper_ab.settings.kind import SettingsKind, settings_of
from esper_ab.settings.request import Layer, Request
from esper_ab.settings.schema import FIELDS, TRAINER, of_group
from esper_ab.settings.values import typed

msgspec.json.Decoder(GroupSettings)  # built now, in one thread: tests/house/test_decoders.py
msgspec.json.Decoder(AskedExperiment)


@dataclass(frozen=True)
class _Asked:
    """One group as requested, with the layers that apply to it alone."""

    name: str
    table: Layer
    own: Layer  # from --groups (a reward or controller) and --group; overrides all other layers


def parse(request: Request) -> AskedExperiment:
    """Return the requested experiment.

    Raises UsageError if the request is invalid or has several tasks; the one-line message includes the remedy.
    """
    task = request.value_of("task") or FIELDS["task"].default
    if request.tasks or request.by_task or "," in task:
        raise UsageError(SettingName("task"), ": give one task here; only `esper-ab launch` takes several")
    if task.endswith(".py"):
        raise UsageError(SettingName("task", task), f": name what makes the environment, as in {Path(task).name}:make")
    kind = kind_of_request(request)
    asked_groups = _collect_groups(request, kind)
    groups = tuple(_make_group(group, request, kind.defaults) for group in asked_groups)
    _refuse_shared_folders([group.name for group in groups])
    _refuse_without_effect(request, asked_groups)
    values = {**kind.defaults, **_values(request.common)}
    values = {key: value for key, value in values.items() if not of_group(key)}
    experiment = msgspec.convert({**nest(values), "groups": groups}, type=AskedExperiment)
    refuse_too_many(len(groups), experiment.seeds)
    assignments = list(request.common.values())
    for group in asked_groups:
        assignments += [*group.table.values(), *group.own.values()]
    return kind.read(experiment, assignments)


def _refuse_shared_folders(names: Sequence[str]) -> None:
    """Raise UsageError if two groups would write their files into one folder."""
    folders = {plain_group(name): name for name in names}
    for name in names:
        other_name = folders[plain_group(name)]
        if other_name != name:
            raise UsageError(
                SettingName("groups"), f": {name} and {other_name} would share a folder; rename one of them"
            )


def _values(layer: Layer) -> dict[str, Any]:
    """Return the values of a layer by key."""
    return {key: assignment.value for key, assignment in layer.items()}


def kind_of_request(request: Request) -> SettingsKind:
    """Return the kind of the requested task, or of a user's trainer."""
    if request.value_of("trainer"):
        return settings_of(TRAINER_PREFIX)
    return settings_of(request.value_of("task") or FIELDS["task"].default)


def nest(values: Mapping[str, Any]) -> dict[str, Any]:  # dotted keys -> nested tables
    tree: dict[str, Any] = {}
    for key, value in values.items():
        if key.startswith(TRAINER):
            sections = [TRAINER.rstrip(".")]
            name = key.removeprefix(TRAINER)  # "algo.lr" is one name of the user's
        else:
            *sections, name = key.split(".")
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[name] = value
    return tree


def _make_group(asked_group: _Asked, request: Request, defaults: Mapping[str, object]) -> Group:
    """Merge one group's layers; raises UsageError if the group's name is invalid."""
    if not re.fullmatch(GROUP_NAME, asked_group.name):
        raise UsageError(
            f"group name {asked_group.name!r}: a group's name is part of file names, so it must start with a letter or "
            "digit "
            "and contain only letters, digits and _.=+-, at most 64 characters"
        )
    layers = {**request.weak, **asked_group.table, **request.strong, **asked_group.own}
    values = {**defaults, **_values(layers)}
    own_values = nest({key: value for key, value in values.items() if of_group(key)})
    return Group(name=asked_group.name, settings=msgspec.convert(own_values, type=GroupSettings))


def _collect_groups(request: Request, kind: SettingsKind) -> list[_Asked]:
    """Collect the groups, each with its own layers."""
    created_names = [*(() if request.alone else request.tables), *request.altered]
    if kind.no_groups and not (request.groups or created_names):
        raise UsageError(SettingName("groups"), kind.no_groups)
    declared_groups = request.groups or (() if created_names else kind.default_groups)
    asked_groups = [_read_entry(text, request, kind) for text in declared_groups]
    group_names = [group.name for group in asked_groups]
    for name in group_names:
        if group_names.count(name) > 1:
            raise UsageError(SettingName("groups"), f": {name!r} is named twice; rename one, as in {name}2={name}")
    for name in dict.fromkeys(created_names):
        if name not in group_names:
            choice: tuple[Assignment, ...] = ()
            if ":" not in name and not kind.free_names:
                choice = _find_choice(name, kind, name, request)
            table = request.tables.get(name, {})
            asked_groups.append(
                _collect_layers(
                    name,
                    [choice_assignment for choice_assignment in choice if choice_assignment.key not in table],
                    request,
                )
            )
    return asked_groups


def _read_entry(text: str, request: Request, kind: SettingsKind) -> _Asked:
    """Return the group described by an entry (NAME or NAME=MODE) of `--groups` or of a file's list."""
    if not text.strip():
        raise UsageError(SettingName("groups"), ": a name is missing; separate names by commas, as in shaped,wait")
    if text in request.tables or text in request.altered:  # "lr=1e-3", from --vary
        name = text
        equals_sign = ""
        meaning = ""
    else:
        name, equals_sign, meaning = (part.strip() for part in text.partition("="))
    if not equals_sign and ":" in name:
        raise UsageError(
            SettingName("groups", text), f": give the group with your own function a name, as in mine={text}"
        )
    if kind.free_names and not equals_sign:
        return _collect_layers(name, (), request)
    choice = _find_choice(meaning if equals_sign else name, kind, f"--groups {text}", request)
    if not choice and (equals_sign or (name not in request.tables and name not in request.altered)):
        raise UsageError(SettingName("groups", text), f": {_explain_no_choice(meaning if equals_sign else name, kind)}")
    if not equals_sign and name in request.tables:
        choice = ()
    return _collect_layers(name, choice, request)


def _collect_layers(name: str, choices: Iterable[Assignment], request: Request) -> _Asked:
    own_assignments = {**{assignment.key: assignment for assignment in choices}, **request.altered.get(name, {})}
    return _Asked(name, request.tables.get(name, {}), own_assignments)


def _find_choice(name: str, kind: SettingsKind, origin: str, request: Request) -> tuple[Assignment, ...]:
    """Return the assignment that selects the reward mode, controller or user function `name`; () if there is none."""
    for key, known_names in (("reward.mode", kind.rewards), ("controller.name", kind.controllers)):
        if name in known_names or (":" in name and key == "reward.mode"):
            return (typed(Assignment(key, name, origin, request.folder, is_text=False)),)
    return ()


def _explain_no_choice(name: str, kind: SettingsKind) -> str:
    if name.endswith(".py"):
        return f"{name!r} is a file; write your own function as FILE:FUNCTION, as in mine={name}:reward"
    hint = did_you_mean(name, [*kind.rewards, *kind.controllers])
    return f"no reward mode or controller {name!r}; {hint}"


def _refuse_without_effect(request: Request, asked_groups: Sequence[_Asked]) -> None:
    """Raise UsageError for a setting of all groups that is overridden by every group or, in a grid, by any group."""
    for key, assignment in request.strong.items():
        overriding = [group.name for group in asked_groups if key in group.own]
        if overriding and len(overriding) == len(asked_groups):
            raise UsageError(f"{assignment.origin} has no effect, because every group has its own {key}; leave it out")
        if overriding and assignment.origin.startswith("--grid"):
            raise UsageError(
                f"{assignment.origin}: group {overriding[0]!r} has its own {key}, but all groups in a cell of a grid "
                "must have the same; remove one of the two"
            )
