"""Command line and TOML file -> AskedExperiment: layers, each key known, each typed, nothing ignored in silence.

From weak to strong: defaults; the file's common tables; the file's table of the group; `--set`; the reward or
controller in `--groups`; `--group`.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts import catalog
from esper_ab.contracts.errors import Setting, UsageError
from esper_ab.contracts.kinds import CONTROLLERS, GROWTH, GYMNASIUM, REWARDS, kind_of_task
from esper_ab.contracts.kinds import TRAINER as TRAINER_KIND
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.settings import GroupSettings
from esper_ab.settings.assignments import (
    EXPERIMENT_KEYS,
    GROUP_KEYS,
    PARAM,
    SHORT,
    TOO_MANY_DIGITS,
    TRAINER,
    Assignment,
    convert_value,
    did_you_mean,
    of_group,
    read_assignment,
    split_commas,
    which_setting,
)
from esper_ab.settings.experiment import AskedExperiment, Group
from esper_ab.settings.foreign_keys import foreign
from esper_ab.settings.launcher import UNSAID, AskedLauncher, asked_launcher
from esper_ab.settings.outcome_range import read_range
from esper_ab.settings.refusals import (
    refuse_reward_as_outcome,
    refuse_screening_without_control,
    refuse_unread,
    refuse_without_effect,
)
from esper_ab.settings.trainer import trained

DEFAULT_GROUPS = ("shaped", "simplified")
# Of kinds whose episodes are cheap, and whose length is their own: `steps` is then a limit.
_DEFAULTS: dict[str, dict[str, Any]] = {GYMNASIUM: {"n_envs": 8, "episodes": 50, "steps": 1000}}
_TASK = AskedExperiment(groups=()).task
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
msgspec.json.Decoder(GroupSettings)  # now, in one thread: tests/house/test_decoders.py
msgspec.json.Decoder(AskedExperiment)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The command line, as far as it says what to run."""

    groups: tuple[str, ...] = ()  # "shaped", "a=shaped"
    group: tuple[str, ...] = ()  # "fast:ppo.lr=1e-3"
    assignments: tuple[str, ...] = ()  # of --set: "ppo.lr=1e-3"
    cell: tuple[str, ...] = ()  # likewise, of --grid: one value of each setting that is varied
    flags: dict[str, object] = field(default_factory=dict)  # key of experiment or all groups -> value of its own flag


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    """A TOML file, flattened."""

    folder: Path = Path()  # where relative paths in `groups` begin
    groups: tuple[str, ...] = ()
    common: tuple[Assignment, ...] = ()
    tables: dict[str, tuple[Assignment, ...]] = field(default_factory=dict)  # group -> its own settings
    tasks: dict[str, tuple[Assignment, ...]] = field(default_factory=dict)  # of several tasks -> its own settings
    launcher: AskedLauncher = UNSAID


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Names that a group may be called by."""

    rewards: tuple[str, ...]
    controllers: tuple[str, ...]  # that do not learn
    kind: str = GROWTH  # of the task that they are for


def list_installed() -> Catalogue:
    """List the names that this installation has; nothing is imported."""
    return Catalogue(rewards=catalog.names("workers.rewards"), controllers=catalog.names("workers.controllers"))


def settings_sha256(tree: dict[str, Any]) -> str:
    """Return the sha256 of a tree of settings, as [record] of an experiment.toml keeps it; it covers all of them."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True, default=str).encode()).hexdigest()


def read_toml(path: Path) -> FileSettings:
    """Read the file at `path`; UsageError naming the line when it is not TOML."""
    try:
        tree = tomllib.loads(read_regular(path).decode("utf-8-sig"))
        record = tree.pop("record", {})  # of an experiment.toml: what was found when it ran
        sha256 = settings_sha256(tree)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    except ValueError:
        raise UsageError(f"{path}: {TOO_MANY_DIGITS}") from None
    except RecursionError:
        raise UsageError(f"{path}: no settings: lists or tables are nested too deeply") from None
    if isinstance(record, dict) and record.get("settings", sha256) != sha256:
        raise UsageError(
            f"{path}: its settings are not those that [record] vouches for: they were edited or the file is damaged; "
            "take the table [record] out of an edited copy"
        )
    groups, launcher = tree.pop("groups", []), tree.pop("launcher", {})
    tables, tasks = tree.pop("group", {}), tree.pop("tasks", {})
    if not isinstance(groups, list) or not all(isinstance(name, str) for name in groups):
        raise UsageError(f'{path}: groups must be a list of names, as in ["shaped", "simplified"]')
    for word, found in (("group", tables), ("tasks", tasks)):
        if not isinstance(found, dict) or not all(isinstance(table, dict) for table in found.values()):
            raise UsageError(f"{path}: [{word}.NAME] must be tables")
    return FileSettings(
        folder=path.parent,
        groups=tuple(groups),
        common=tuple(_leaves(tree, path, ())),
        tables={name: tuple(_leaves(table, path, ("group", name))) for name, table in tables.items()},
        tasks={name: tuple(_leaves(table, path, ("tasks", name))) for name, table in tasks.items()},
        launcher=asked_launcher(launcher, f"{path.name} [launcher]", {"launcher": "name"}),
    )


def _leaves(tree: dict[str, Any], path: Path, above: tuple[str, ...], prefix: str = "") -> Iterable[Assignment]:
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _leaves(value, path, (*above, name), f"{key}.")
        else:
            table = f"[{'.'.join(above)}] " if above else ""
            origin = f"{path.name} {table}{name}"
            yield Assignment(SHORT.get(key, key), value, origin, path.parent, is_text=False)


def _convert_layer(assignments: Iterable[Assignment], keys: dict[str, Any]) -> dict[str, Any]:
    """Convert the values of one layer; a repeated key is an error, because one of the two would be ignored."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        if assignment.key in values:
            raise UsageError(f"{assignment.origin}: {assignment.key} is set twice")
        values[assignment.key] = convert_value(assignment, keys)
    return values


def _check_key(assignment: Assignment, *, in_group: bool, free: bool) -> Assignment:
    key = assignment.key
    if key in GROUP_KEYS or (of_group(key) and (free or key.startswith(PARAM))) or (
        key in EXPERIMENT_KEYS and not in_group
    ):
        return assignment
    if key in EXPERIMENT_KEYS:
        raise UsageError(
            f"{assignment.origin}: {key} cannot differ between groups; use ", Setting(key, "…", assigned=True),
            " for all of them",
        )  # fmt: skip
    known = [*GROUP_KEYS, *SHORT] if in_group else [*GROUP_KEYS, *SHORT, *EXPERIMENT_KEYS]
    own = f"a setting of the trainer's own is {TRAINER}{key}" if free and "." not in key else ""
    hint = own or foreign(key) or which_setting(key, known)
    if key.startswith(TRAINER) and not foreign(key):
        hint = "settings of a trainer of your own go with --trainer"
    raise UsageError(f"{assignment.origin}: unknown key {key!r}; {hint}")


@dataclass(frozen=True)
class _Asked:
    """One group as asked for: its own layers, weak to strong."""

    name: str
    table: tuple[Assignment, ...]
    chosen: tuple[Assignment, ...]  # the reward or controller that --groups names
    altered: tuple[Assignment, ...]  # of --group


def _read_alterations(texts: Iterable[str], *, free: bool) -> dict[str, list[Assignment]]:
    altered: dict[str, list[Assignment]] = {}
    for text in texts:
        name, colon, rest = text.partition(":")
        if not colon or not rest.strip():
            raise UsageError(
                f"--group {text}: expected NAME:key=value,key=value, which alters one group; to name groups: "
                f"--groups {name or 'shaped,simplified'}"
            )
        for item in split_commas(rest, f"--group {name}"):
            assignment = _check_key(read_assignment(item, f"--group {name}:{item}"), in_group=True, free=free)
            altered.setdefault(name, []).append(assignment)
    return altered


def _find_choice(name: str, catalogue: Catalogue, origin: str, folder: Path) -> Assignment | None:
    """Assign the reward mode, controller or user function that is called `name`; None when it is none of these."""
    if name in catalogue.rewards or ":" in name:
        return Assignment("reward.mode", name, origin, folder, is_text=False)
    if name in catalogue.controllers:
        return Assignment("controller.name", name, origin, folder, is_text=False)
    return None


def _explain_no_choice(name: str, catalogue: Catalogue) -> str:
    if name.endswith(".py"):
        return f"{name!r} is a file; a function of your own is FILE:FUNCTION, as in mine={name}:reward"
    hint = did_you_mean(name, [*catalogue.rewards, *catalogue.controllers])
    return f"no reward mode or controller {name!r}; {hint}"


def _default_groups(kind: str) -> tuple[str, ...]:
    if kind == GROWTH:
        return DEFAULT_GROUPS
    if kind == TRAINER_KIND:
        return ()
    raise UsageError(
        Setting("groups"), ": name them; env trains on the environment's own reward, as in "
        "env,mine=path/to/file.py:reward",
    )  # fmt: skip


def _collect_groups(request: Request, file: FileSettings, catalogue: Catalogue, *, free: bool) -> list[_Asked]:
    """Collect the groups and what is said of each; `free`: names need not be in the catalogue."""
    altered = _read_alterations(request.group, free=free)
    declared = request.groups or file.groups
    created = [*(() if request.groups else file.tables), *altered]
    if not declared and not created:
        declared = _default_groups(catalogue.kind)
    folder = Path.cwd() if request.groups else file.folder
    asked: list[_Asked] = []
    for text in declared:
        if not text.strip():
            raise UsageError(Setting("groups"), ": a name is missing; names between commas, as in shaped,wait")
        name, equals, meaning = (part.strip() for part in text.partition("="))
        if not equals and ":" in name:
            raise UsageError(
                Setting("groups", text), f": a function of your own needs a group's name, as in mine={text}"
            )
        plain = free and not equals
        choice = None if plain else _find_choice(meaning if equals else name, catalogue, f"--groups {text}", folder)
        if choice is None and not plain and (equals or (name not in file.tables and name not in altered)):
            raise UsageError(Setting("groups", text), f": {_explain_no_choice(meaning if equals else name, catalogue)}")
        chosen = () if choice is None or (not equals and name in file.tables) else (choice,)
        asked.append(_Asked(name, file.tables.get(name, ()), chosen, tuple(altered.get(name, ()))))
    names = [group.name for group in asked]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                Setting("groups"), f": {name!r} is there twice; give one another name, as in {name}2={name}"
            )
    for name in dict.fromkeys(created):
        if name not in names:
            choice = _find_choice(name, catalogue, name, folder) if ":" not in name and not free else None
            own = {assignment.key for assignment in file.tables.get(name, ())}
            chosen = (choice,) if choice and choice.key not in own else ()
            asked.append(_Asked(name, file.tables.get(name, ()), chosen, tuple(altered.get(name, ()))))
    return asked


def _nest(values: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[name] = value
    return tree


def _make_group(asked: _Asked, file: FileSettings, common: list[Assignment], catalogue: Catalogue) -> Group:
    """Put one group's layers together and check the result."""
    if not _NAME.fullmatch(asked.name):
        raise UsageError(
            f"group name {asked.name!r}: it names files, so a letter or digit, then letters, digits, '_', '.' and '-', "
            "64 at most"
        )
    layers = ([a for a in file.common if of_group(a.key)], asked.table, common, asked.chosen, asked.altered)
    values: dict[str, Any] = {"reward.mode": catalogue.rewards[0]} if catalogue.kind == GYMNASIUM else {}
    for layer in layers:
        values |= _convert_layer(layer, GROUP_KEYS)
    settings = msgspec.convert(_nest(values), type=GroupSettings)
    if catalogue.kind != TRAINER_KIND:  # whose own settings the preflight checks
        _check_group(asked.name, settings, catalogue)
    return Group(name=asked.name, settings=settings)


def is_user_reward(mode: str) -> bool:
    """Whether a reward mode names a function of the user's own."""
    return ":" in mode


def _check_group(name: str, settings: GroupSettings, catalogue: Catalogue) -> None:
    reward, controller = settings.reward, settings.controller
    if not is_user_reward(reward.mode) and reward.mode not in catalogue.rewards:
        hint = did_you_mean(reward.mode, catalogue.rewards)
        raise UsageError(f"group {name!r}: no reward mode {reward.mode!r}; {hint}")
    learning_or_not = ("ppo", *catalogue.controllers)
    if controller.name not in learning_or_not:
        hint = did_you_mean(controller.name, learning_or_not)
        raise UsageError(f"group {name!r}: no controller {controller.name!r}; {hint}")
    if name in catalogue.rewards and reward.mode != name:
        raise UsageError(f"group {name!r} would use reward {reward.mode!r}; give it another name, as in x={name}")
    if name in catalogue.controllers and controller.name != name:
        raise UsageError(f"group {name!r} would use controller {controller.name!r}; give it another name")
    if reward.family == "loss" and reward.mode != "shaped":
        raise UsageError(f"group {name!r}: reward.family=loss goes with reward.mode=shaped only, not {reward.mode!r}")
    if reward.mode == "shaped" and reward.gamma != 0.995:
        raise UsageError(f"group {name!r}: mode shaped holds for reward.gamma=0.995 only, not {reward.gamma}")
    if controller.schedule and controller.name != "schedule":
        raise UsageError(
            f"group {name!r}: controller.schedule is read by controller=schedule only, not by {controller.name!r}"
        )
    blueprints = settings.growth.blueprints
    if not blueprints or len(set(blueprints)) != len(blueprints):
        raise UsageError(f"group {name!r}: growth.blueprints must be a list of different names, not {list(blueprints)}")


def _of_kind(kind: str, catalogue: Catalogue) -> Catalogue:
    """Return the names that groups of a task of `kind` may be called by."""
    if kind == GROWTH:
        return catalogue
    return Catalogue(rewards=REWARDS[kind], controllers=CONTROLLERS[kind], kind=kind)


def parse(request: Request, file: FileSettings, catalogue: Catalogue | None = None) -> AskedExperiment:
    """Put flags and file together; UsageError, one line with the remedy, for anything that cannot be honoured.

    `catalogue`: the names that groups may be called by; None: those that this installation has.
    """
    cell = [read_assignment(text, f"--grid {text}") for text in request.cell]
    sets = [*(read_assignment(text, f"--set {text}") for text in request.assignments), *cell]
    flags = [
        Assignment(key, value, f"--{key.rpartition('.')[2].replace('_', '-')}", Path.cwd(), is_text=False)
        for key, value in request.flags.items()
    ]
    own = any(one.key == "trainer" and one.value for one in (*file.common, *sets, *flags))
    for assignment in (*sets, *file.common):
        _check_key(assignment, in_group=False, free=own)
    for table in file.tables.values():  # those of groups left out by --groups, too
        _convert_layer((_check_key(assignment, in_group=True, free=own) for assignment in table), GROUP_KEYS)
    task = next((str(a.value) for a in (*flags, *sets, *file.common) if a.key == "task"), _TASK)
    if file.tasks or "," in task:
        raise UsageError(Setting("task"), ": one is asked for here; `esper-ab launch` takes several together")
    catalogue = _of_kind(TRAINER_KIND if own else kind_of_task(task), catalogue or list_installed())
    asked = _collect_groups(request, file, catalogue, free=own)
    if not own:
        alone = [a for group in asked for a in (*group.table, *group.altered)]
        for assignment in (*sets, *flags, *file.common, *alone):
            refuse_unread(assignment, catalogue.kind, task)
    common = [a for a in (*sets, *flags) if of_group(a.key)]
    refuse_without_effect(common, cell, {one.name: {a.key for a in (*one.chosen, *one.altered)} for one in asked})
    values = _convert_layer((a for a in file.common if a.key in EXPERIMENT_KEYS), EXPERIMENT_KEYS)
    values |= _convert_layer((a for a in (*sets, *flags) if a.key in EXPERIMENT_KEYS), EXPERIMENT_KEYS)
    values = _DEFAULTS.get(catalogue.kind, {}) | values
    groups = tuple(_make_group(one, file, common, catalogue) for one in asked)
    if own:
        own_layers = (layer for group in asked for layer in (group.table, group.chosen, group.altered))
        values |= trained(values, groups, [*file.common, *sets, *flags, *chain.from_iterable(own_layers)])
    else:
        refuse_reward_as_outcome(values.get("outcome", ""), groups)
        read_range(values.get("outcome_range", ""))
    if len(groups) < 2:
        only = groups[0].name
        raise UsageError(
            Setting("groups"), f": one group ({only}) cannot be compared; name another, as in {only},wait"
        )
    experiment = msgspec.convert({**_nest(values), "groups": groups}, type=AskedExperiment)
    refuse_screening_without_control(experiment)
    return experiment
