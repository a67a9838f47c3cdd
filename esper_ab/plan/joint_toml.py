"""The settings of an experiment over several tasks, or over a grid, as one TOML file that `launch` reads. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esper_ab.plan.settings_toml import settings_tree, toml_lines, tree_sha256
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.settings.schema import FIELDS, SHORT

_OF_PARTS = frozenset({"name", "task", "alpha", "looks", "groups"})  # settings that the whole has in another form
Keys = tuple[str, ...]  # of nested tables
Leaves = dict[Keys, Any]


@dataclass(frozen=True, kw_only=True)
class _TaskSettings:
    """The settings of one task, without those of the grid."""

    named: str  # as the file names the task; "": a trainer, which the settings name
    common: Leaves
    groups: Mapping[str, Leaves]


def joint_toml(
    experiments: Sequence[ResolvedExperiment], *, alpha: float, grid: Sequence[str] = (), scores: str = ""
) -> str:
    """Return the resolved settings of all parts; "" if one file cannot have them.

    It cannot if groups differ from task to task in a setting in which they also differ from each other. `alpha`: of all
    parts; `grid`: its axes, KEY=V1,V2.
    """
    axes = {tuple(SHORT.get(key, key).split(".")) for key in (text.partition("=")[0].strip() for text in grid)}
    by_task: dict[str, _TaskSettings] = {}
    for experiment in experiments:
        settings = _settings_of_task(experiment, axes)
        if by_task.setdefault(experiment.task, settings) != settings:
            return ""
    groups, moved = _groups_of_all(list(by_task.values()))
    if moved is None:
        return ""
    own_settings = {task: {**settings.common, **moved[settings.named]} for task, settings in by_task.items()}
    once = _named_once(own_settings)
    tree: dict[str, Any] = {"alpha": alpha, "groups": list(groups)}
    if tasks := [settings.named for settings in by_task.values() if settings.named]:
        tree["task"] = tasks if len(tasks) > 1 else tasks[0]
    if grid:
        tree["grid"] = list(grid)
    if scores:
        tree["scores"] = scores
    tree |= _nested(once)
    tree["group"] = {name: _nested(leaves) for name, leaves in groups.items()}
    tables = {
        task: _nested({keys: value for keys, value in leaves.items() if keys not in once})
        for task, leaves in own_settings.items()
    }
    if any(tables.values()):
        tree["tasks"] = tables
    tree["record"] = {"settings": tree_sha256(tree)}
    return "\n".join(toml_lines(tree)) + "\n"


def _settings_of_task(experiment: ResolvedExperiment, axes: Collection[Keys]) -> _TaskSettings:
    tree = settings_tree(experiment)
    groups = {
        name: {keys: value for keys, value in _leaves(table) if keys not in axes}
        for name, table in tree.pop("group").items()
    }
    common = {keys: value for keys, value in _leaves(tree) if keys not in axes and keys[0] not in _OF_PARTS}
    return _TaskSettings(named=tree.get("task", ""), common=common, groups=groups)


def _groups_of_all(tasks: Sequence[_TaskSettings]) -> tuple[dict[str, Leaves], dict[str, Leaves] | None]:
    """Return the settings that every group has on all tasks, and by task those that all groups have on it alone.

    The latter are None if groups differ in one of them.
    """
    tables = [table for task in tasks for table in task.groups.values()]
    varying_keys = [keys for keys in dict.fromkeys(keys for table in tables for keys in table) if _varies(tasks, keys)]
    moved: dict[str, Leaves] = {}
    for task in tasks:
        first_table, *other_tables = task.groups.values()
        if any(table.get(keys) != first_table.get(keys) for table in other_tables for keys in varying_keys):
            return {}, None
        moved[task.named] = {keys: first_table[keys] for keys in varying_keys if keys in first_table}
    groups = {
        name: {keys: value for keys, value in table.items() if keys not in varying_keys}
        for name, table in tasks[0].groups.items()
    }
    return groups, moved


def _varies(tasks: Sequence[_TaskSettings], keys: Keys) -> bool:
    """True if a group has not the same value on all tasks."""
    return any(
        (keys in task.groups[name], task.groups[name].get(keys)) != (keys in table, table.get(keys))
        for task in tasks
        for name, table in tasks[0].groups.items()
    )


def _named_once(by_task: Mapping[str, Leaves]) -> Leaves:
    """Return the settings that all tasks have alike, and those that a file has once for all tasks."""
    once: Leaves = {}
    for leaves in by_task.values():
        for keys, value in leaves.items():
            field = FIELDS.get(".".join(keys))
            must_be = field is not None and field.spec.same
            if must_be or all(keys in other and other[keys] == value for other in by_task.values()):
                once[keys] = value
    return once


def _leaves(tree: Mapping[str, Any], above: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield the values of nested tables with their keys."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _nested(leaves: Leaves) -> dict[str, Any]:
    """Return nested tables of values."""
    tree: dict[str, Any] = {}
    for keys, value in leaves.items():
        table = tree
        for key in keys[:-1]:
            table = table.setdefault(key, {})
        table[keys[-1]] = value
    return tree
