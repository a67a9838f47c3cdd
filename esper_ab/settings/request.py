"""Merge flags, a TOML file and Python settings into one `Request`; every key in it is known and every value is typed.

From weakest to strongest: defaults; the file's common tables; the file's table of the group; `--set` and flags; the
reward or controller in `--groups`; `--group`. A flag that is not given sets nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_origin

from esper_ab.contracts.errors import Setting, UsageError, as_flag
from esper_ab.contracts.plain_values import whole_number
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.trainer import is_command, placeholders
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import which_setting
from esper_ab.settings.assignments import (
    FIELDS,
    PARAM,
    SHORT,
    TOO_MANY_DIGITS,
    TRAINER,
    Assignment,
    Field,
    read_assignment,
    split_commas,
    typed,
)
from esper_ab.settings.foreign_keys import foreign
from esper_ab.settings.launcher import UNSAID, AskedLauncher, asked_launcher

_NO_NAME = re.compile(r"[^A-Za-z0-9_.=+-]+")  # not allowed in a group's name
_NAME_CHARS = 64
_LISTS = {"slots": "--slots early late", "devices": "--devices cpu:0 cpu:1"}  # flags with lists of names, an example


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    """The settings that a TOML file or a Python program declares, as written."""

    folder: Path = Path()  # base of relative paths in `groups`
    groups: tuple[str, ...] = ()
    common: tuple[Assignment, ...] = ()
    tables: dict[str, tuple[Assignment, ...]] = field(default_factory=dict)  # group -> its own settings
    tasks: dict[str, tuple[Assignment, ...]] = field(default_factory=dict)  # task, of several -> its own settings
    launcher: AskedLauncher = UNSAID


NO_FILE = FileSettings()
Layer = Mapping[str, Assignment]  # by key


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request; all keys in it are checked, and all values are typed."""

    groups: tuple[str, ...]  # "shaped", "a=shaped"
    folder: Path  # base of relative paths in `groups`
    alone: bool  # whether the groups of `tables` are ignored, and only `groups` and `altered` count
    weak: Layer  # for all groups
    tables: Mapping[str, Layer]  # group -> its own settings, over `weak`
    strong: Layer  # for all groups, over `tables`
    altered: Mapping[str, Layer]  # group -> its own settings, over all others
    tasks: tuple[str, ...] = ()  # if there are several
    by_task: Mapping[str, Layer] = field(default_factory=dict)  # task, of several -> its own settings, over `weak`
    margins: str = ""  # TASK=SIZE,…
    grid: tuple[str, ...] = ()  # KEY=V1,V2,…
    scores: str = ""  # WORST..TARGET, for all parts or by part
    launcher: AskedLauncher = UNSAID

    @property
    def common(self) -> Layer:
        """The settings of all groups, by key."""
        return {**self.weak, **self.strong}

    def said(self, key: str) -> Any:
        """Return the value of a key for all groups; None if it is not set."""
        return self.common[key].value if key in self.common else None

    def more(self, written: Iterable[Assignment]) -> Layer:
        """Check and type further settings for all groups.

        Raises UsageError as `request` does, and also if a setting is already set.
        """
        trainer = self.said("trainer") or ""
        found = _layer(_as_meant(written, trainer), free=bool(trainer))
        for key, one in found.items():
            if key in self.strong:
                raise UsageError(f"{one.origin}: {key} is set twice")
        return found

    def also(self, groups: tuple[str, ...], flags: Mapping[str, object]) -> Request:
        """Return the request with only these groups and with further flags. Raises UsageError as `request` does."""
        return replace(self, groups=groups, alone=True, strong={**self.strong, **self.more(of_flags(flags))})


def _varied(text: str, trainer: str) -> dict[str, list[Assignment]]:
    """Parse --vary KEY=V1,V2,… into one group KEY=VALUE per value; with a trainer, KEY needs no `trainer.` prefix."""
    key, equals, values = (part.strip() for part in text.partition("="))
    origin = f"--vary {text}"
    found = dict[str, list[Assignment]]()
    pieces = split_commas(values, origin) if equals and key else []
    if len(pieces) < 2 or not all(pieces):
        raise UsageError(f"{origin}: expected a key and at least two values, as in lr=3e-4,1e-3")
    own = trainer and ("." not in key or (is_command(trainer) and key not in FIELDS and not key.startswith(TRAINER)))
    full = f"{TRAINER}{key}" if own else SHORT.get(key, key)
    for piece in pieces:
        name = f"{key}={_NO_NAME.sub('-', piece)}"[:_NAME_CHARS]
        if name in found:
            raise UsageError(f"{origin}: {_why_same_name(name, full, str(found[name][0].value), piece)}")
        found[name] = [Assignment(full, piece, origin, Path.cwd(), is_text=True)]
    return found


def _why_same_name(name: str, key: str, first: str, second: str) -> str:
    """Say why two values of --vary give the same group name, and what to write instead."""
    if first == second:
        return f"the value {first} is given twice; remove one"
    return (
        f"two groups would be named {name}, because a name keeps only the letters a to z, digits and _.=+-, and at "
        f"most {_NAME_CHARS} characters; name the groups yourself, as in --group first:{key}={first} "
        f"--group second:{key}={second}"
    )


def read_request(options: Mapping[str, Any], file: FileSettings = NO_FILE) -> Request:
    """Merge flags over the settings of a file.

    Raises UsageError if a flag or setting is invalid; the one-line message includes the remedy. `options` has the
    values of the flags by name, as click parsed them; missing keys count as not given.
    """
    groups = split_commas(options["groups"], "--groups") if options.get("groups") is not None else ()
    vary = options.get("vary") or ""
    for flag in ("groups", "group", "control") if vary else ():
        if options.get(flag):
            raise UsageError(f"--vary creates the groups and compares all with the first; remove --vary or --{flag}")
    if vary and (file.groups or file.tables):
        raise UsageError("--vary creates groups, but the file also declares groups; remove one of the two")
    found = request(
        file,
        groups=tuple(groups),
        group=options.get("group") or (),
        assignments=options.get("set") or (),
        flags=read_flags(options),
        vary=vary,
    )
    return replace(found, grid=tuple(options.get("grid") or ()), scores=options.get("scores") or "")


def request(
    file: FileSettings = NO_FILE,
    *,
    groups: tuple[str, ...] = (),
    group: Iterable[str] = (),
    assignments: Iterable[str] = (),
    flags: Mapping[str, object] | None = None,
    vary: str = "",
) -> Request:
    """Merge the command line over `file`; UsageError for an unknown key or an invalid value.

    `groups` has entries such as "shaped" or "a=shaped". `group` has the texts of --group, as in "fast:ppo.lr=1e-3", and
    `assignments` has the texts of --set, as in "ppo.lr=1e-3". `flags` has the values of all other flags by key. `vary`
    is the text of --vary, as in "lr=3e-4,1e-3".
    """
    said = dict(flags or {})
    common = list(file.common)
    by_task = dict(file.tasks)
    margins = str(said.pop("margin")) if isinstance(said.get("margin"), str) else ""
    tasks = _task_names(said.get("task"), file)
    if "task" in said:
        by_task = {task: table for task, table in by_task.items() if task in tasks}
        said["task"] = tasks[0]
    if "task" in said or len(tasks) > 1:
        common = [one for one in common if one.key != "task"]
    if len(tasks) > 1:
        said.pop("task", None)
    strong = [*(read_assignment(text, f"--set {text}") for text in assignments), *of_flags(said)]
    trainer = next((str(one.value) for one in (*strong, *common) if one.key == "trainer" and one.value), "")
    altered = _read_alterations(group)
    if vary:
        altered = _varied(vary, trainer)
        strong += of_flags({"control": next(iter(altered))})

    def layer(written: Iterable[Assignment], *, in_group: bool = False) -> Layer:
        return _layer(_as_meant(written, trainer), free=bool(trainer), in_group=in_group)

    return Request(
        groups=groups or file.groups,
        folder=Path.cwd() if groups else file.folder,
        alone=bool(groups),
        weak=layer(common),
        strong=layer(strong),
        tables={name: layer(table, in_group=True) for name, table in file.tables.items()},
        altered={name: layer(table, in_group=True) for name, table in altered.items()},
        tasks=tuple(tasks) if len(tasks) > 1 else (),
        by_task={name: layer(table) for name, table in by_task.items()},
        margins=margins,
        launcher=file.launcher,
    )


def _task_names(flag: object, file: FileSettings) -> list[str]:
    """Return the tasks from --task or, if that flag is missing, the file; UsageError for an empty or repeated name."""
    listed = next((one.value for one in file.common if one.key == "task" and isinstance(one.value, list)), [])
    names = list(map(str, listed)) if flag is None else split_commas(str(flag), "--task")
    for name in names:
        if not name.strip() or names.count(name) > 1:
            raise UsageError(Setting("task"), f": {name!r} is named twice" if name.strip() else ": a name is missing")
    return names


def of_flags(flags: Mapping[str, object]) -> list[Assignment]:
    """Convert flags to assignments."""
    return [
        Assignment(key, value, as_flag(Setting(key.rpartition(".")[2])), Path.cwd(), is_text=False)
        for key, value in flags.items()
    ]


def _as_meant(written: Iterable[Assignment], trainer: str) -> Iterable[Assignment]:
    """Prefix dotted keys that are placeholders of a command, "algo.lr" or "trainer.max_epochs", with `trainer.`."""
    names = placeholders(trainer) if is_command(trainer) else ()
    for one in written:
        plain = one.key.startswith(TRAINER) and one.key.removeprefix(TRAINER) in names
        own = "." in one.key and one.key in names and one.key not in FIELDS and not plain
        yield replace(one, key=f"{TRAINER}{one.key}") if own else one


def _layer(written: Iterable[Assignment], *, free: bool, in_group: bool = False) -> Layer:
    """Check and type the assignments of one layer.

    Raises UsageError for a repeated key, because one of its values would be ignored.
    """
    found: dict[str, Assignment] = {}
    for one in written:
        _check_key(one, in_group=in_group, free=free)
        if one.key in found:
            raise UsageError(f"{one.origin}: {one.key} is set twice")
        found[one.key] = typed(one)
    return found


def _check_key(assignment: Assignment, *, in_group: bool, free: bool) -> None:
    """Raise UsageError for an unknown key; with `free`, keys of the user's trainer are accepted."""
    key = assignment.key
    if key.startswith(PARAM) or (free and key.startswith(TRAINER)):
        return
    if key in FIELDS:
        if FIELDS[key].of_group or not in_group:
            return
        raise UsageError(
            f"{assignment.origin}: {key} cannot differ between groups; use ",
            Setting(key, "…", assigned=True),
            " for all groups",
        )
    known = [name for name, one in FIELDS.items() if one.of_group or not in_group]
    if free and "." not in key:
        own = f"if it is a setting of your trainer, write {TRAINER}{key}"
    else:
        own = ""
    hint = own or foreign(key) or which_setting(key, [*known, *SHORT])
    if key.startswith(TRAINER) and not foreign(key):
        hint = "such keys are settings of your own trainer, but this experiment has none"
    raise UsageError(f"{assignment.origin}: unknown key {key!r}; {hint}")


def _read_alterations(texts: Iterable[str]) -> dict[str, list[Assignment]]:
    altered: dict[str, list[Assignment]] = {}
    for text in texts:
        name, colon, rest = text.partition(":")
        if not colon or not rest.strip():
            raise UsageError(
                f"--group {text}: expected NAME:key=value,key=value, which changes one group; to choose groups, use "
                f"--groups {name or 'shaped,simplified'}"
            )
        for item in split_commas(rest, f"--group {name}"):
            altered.setdefault(name, []).append(read_assignment(item, f"--group {name}:{item}"))
    return altered


def read_flags(options: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings given by flags, by key; UsageError for an invalid list or number."""
    found: dict[str, object] = {}
    for key, setting in FIELDS.items():
        value = options.get(setting.flag)
        negates = setting.flag.startswith("no_")
        if key == "seeds" or value is None or (value is False and (negates or not setting.default)):
            continue  # a 0 is kept here and refused later
        found[key] = False if negates else _flag_value(setting, value)
    higher = options.get("higher")
    lower = options.get("lower")
    if higher and lower:
        raise UsageError("--higher and --lower exclude each other, because one outcome decides")
    if higher or lower:
        found |= {"outcome": higher or lower, "outcome_better": "higher" if higher else "lower"}
    return found | _seeds(options.get("seeds"), options.get("max"))


def _flag_value(setting: Field, value: Any) -> object:
    flag = f"--{setting.flag.replace('_', '-')}"
    if setting.key == "eval_episodes":
        return value if value == "auto" else _whole(value, flag, " or auto")
    if get_origin(setting.type) is not tuple:
        return value
    if setting.key not in _LISTS:
        pieces = split_commas(value, flag)
        if setting.key == "looks":
            return [_whole(piece, flag) for piece in pieces]
        return pieces
    names = [piece for piece in str(value).split(",") if piece]
    if not names:
        raise UsageError(f"{flag}: name at least one, as in {_LISTS[setting.key]}, or omit the flag for all of them")
    return names


def _whole(text: str, origin: str, otherwise: str = "") -> int:
    """Parse a whole number from `origin`; raises UsageError, naming the alternative `otherwise`, for anything else."""
    if (found := whole_number(text)) is None:
        raise UsageError(f"{origin}: expected a whole number{otherwise}, not {visible_line(text, 40)!r}")
    return found


def _seeds(seeds: str | None, most: int | None) -> dict[str, object]:
    """Return the settings for `--seeds N`, `--seeds auto --max N` (at most N seeds) or `--seeds auto` (no maximum)."""
    if seeds is None or seeds != "auto":
        if most is not None:
            raise UsageError("--max needs --seeds auto; --seeds N is already a maximum")
        if seeds is None:
            return {}
        return {"seeds": _whole(seeds, "--seeds", " or auto")}
    return {"open_ended": True} if most is None else {"seeds": most}


def settings_sha256(tree: dict[str, Any]) -> str:
    """Return the sha256 over all settings of a tree; this hash is stored in experiment.toml's [record] table."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True, default=str).encode()).hexdigest()


def read_toml(path: Path) -> FileSettings:
    """Read the settings file at `path`.

    Raises UsageError if the file cannot be read or was damaged; if it is not TOML, the message names the line.
    """
    try:
        tree = tomllib.loads(read_regular(path).decode("utf-8-sig"))
        record = tree.pop("record", None)  # in an experiment.toml: facts from the time of planning
        sha256 = settings_sha256(tree)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    except ValueError:
        raise UsageError(f"{path}: {TOO_MANY_DIGITS}") from None
    except RecursionError:
        raise UsageError(f"{path}: lists or tables are nested too deeply") from None
    if record is not None and not (isinstance(record, dict) and isinstance(record.get("settings"), str)):
        raise UsageError(
            f"{path}: [record] is the table in which esper_ab keeps the hash of the settings, and this one has none; "
            "delete it"
        )
    if record is not None and record["settings"] != sha256:
        raise UsageError(
            f"{path}: the settings do not match the hash in [record], so they were edited, or the file is damaged; "
            "if you edited a copy on purpose, delete its [record] table"
        )
    groups = tree.pop("groups", [])
    launcher = tree.pop("launcher", {})
    tables = tree.pop("group", {})
    tasks = tree.pop("tasks", {})
    if not isinstance(groups, list) or not all(isinstance(name, str) for name in groups):
        raise UsageError(f'{path}: groups must be a list of names, as in ["shaped", "simplified"]')
    for word, found in (("group", tables), ("tasks", tasks)):
        if not isinstance(found, dict) or not all(isinstance(table, dict) for table in found.values()):
            raise UsageError(f"{path}: every [{word}.NAME] must be a table")
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
