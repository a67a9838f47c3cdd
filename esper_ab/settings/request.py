"""Merge flags, a TOML file and Python settings into one `Request`; every key in it is known and every value is typed.

From weakest to strongest: defaults; the file's common tables; the file's table of the group; `--set` and flags; the
reward or controller in `--groups`; `--group`. A flag that is not given sets nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.trainer import is_command, placeholders
from esper_ab.contracts.wording import which_setting
from esper_ab.settings.assignments import Assignment, read_assignment, split_commas
from esper_ab.settings.flags import of_flags, read_flags
from esper_ab.settings.flags_alone import said_otherwise
from esper_ab.settings.foreign_keys import foreign
from esper_ab.settings.launcher import NOT_GIVEN, AskedLauncher
from esper_ab.settings.schema import CODE, FIELDS, PARAM, SHORT, TRAINER, or_of_trainer
from esper_ab.settings.settings_file import NO_FILE, FileSettings
from esper_ab.settings.values import typed
from esper_ab.settings.vary import read_vary

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
    task_folder: Path = Path()  # base of relative paths in `tasks` and in the keys of `by_task`
    by_task: Mapping[str, Layer] = field(default_factory=dict)  # task, of several -> its own settings, over `weak`
    margins: str = ""  # TASK=SIZE,…
    grid: tuple[str, ...] = ()  # KEY=V1,V2,…
    grid_origin: str = "--grid"  # for messages
    scores: str = ""  # WORST..TARGET, for all parts or by part
    launcher: AskedLauncher = NOT_GIVEN

    @property
    def common(self) -> Layer:
        """The settings of all groups, by key."""
        return {**self.weak, **self.strong}

    def value_of(self, key: str) -> Any:
        """Return the value of a key for all groups; None if it is not set."""
        if key in self.common:
            return self.common[key].value
        return None

    def check_assignments(self, written_assignments: Iterable[Assignment]) -> Layer:
        """Check and type further settings for all groups.

        Raises UsageError as `request` does, and also if a setting is already set.
        """
        trainer = self.value_of("trainer") or ""
        layer = _check_layer(_add_prefix(written_assignments, trainer), free=bool(trainer))
        for key, assignment in layer.items():
            if key in self.strong:
                raise UsageError(f"{assignment.origin}: {key} is set twice")
        return layer

    def with_groups(self, groups: tuple[str, ...], flags: Mapping[str, object]) -> Request:
        """Return the request with only these groups and with further flags. Raises UsageError as `request` does."""
        strong_assignments = {**self.strong, **self.check_assignments(of_flags(flags))}
        return replace(self, groups=groups, alone=True, strong=strong_assignments)


def read_request(options: Mapping[str, Any], file: FileSettings = NO_FILE) -> Request:
    """Merge flags over the settings of a file.

    Raises UsageError if a flag or setting is invalid; the one-line message includes the remedy. `options` has the
    values of the flags by name, as click parsed them; missing keys count as not given.
    """
    groups: list[str] = []
    if options.get("groups") is not None:
        groups = split_commas(options["groups"], "--groups")
    varied_text = options.get("vary") or ""
    if varied_text:
        _check_vary(options, file)
    merged_request = request(
        file,
        groups=tuple(groups),
        group=options.get("group") or (),
        assignments=options.get("set") or (),
        flags=read_flags(options),
        varied_text=varied_text,
    )
    return replace(
        merged_request,
        grid=tuple(options.get("grid") or file.grid),
        grid_origin="--grid" if options.get("grid") else file.grid_origin,
        scores=options.get("scores") or file.scores,
    )


def _check_vary(options: Mapping[str, Any], file: FileSettings) -> None:
    """Raise UsageError if groups are declared elsewhere too."""
    if options.get("code"):
        setting = str(options["vary"])
        prefix = "" if "." in setting.partition("=")[0] else TRAINER
        raise UsageError(
            "--code creates a group per state, and --vary one per value; to compare the states at each value, write "
            f"--grid {prefix}{setting} instead"
        )
    for flag in ("groups", "group", "control"):
        if options.get(flag):
            raise UsageError(f"--vary creates the groups and compares all with the first; remove --vary or --{flag}")
    if file.groups or file.tables:
        raise UsageError("--vary creates groups, but the file also declares groups; remove one of the two")


def request(
    file: FileSettings = NO_FILE,
    *,
    groups: tuple[str, ...] = (),
    group: Iterable[str] = (),
    assignments: Iterable[str] = (),
    flags: Mapping[str, object] | None = None,
    varied_text: str = "",
) -> Request:
    """Merge the command line over `file`; UsageError for an unknown key or an invalid value.

    `groups` has entries such as "shaped" or "a=shaped". `group` has the texts of --group, as in "fast:ppo.lr=1e-3", and
    `assignments` has the texts of --set, as in "ppo.lr=1e-3". `flags` has the values of all other flags by key.
    `varied_text` is the text of --vary, as in "lr=3e-4,1e-3".
    """
    given_flags = dict(flags or {})
    margins = _take_margins(given_flags)
    tasks = _task_names(given_flags.get("task"), file)
    by_task = dict(file.tasks)
    if "task" in given_flags:
        by_task = {task: table for task, table in by_task.items() if task in tasks}
    common_assignments = _settle_task(tasks, given_flags, file)
    strong_assignments = [*(read_assignment(text, f"--set {text}") for text in assignments), *of_flags(given_flags)]
    trainer = _find_trainer((*strong_assignments, *common_assignments))
    common_assignments, code = _read_code(common_assignments, strong_assignments)
    if varied_text:
        altered_groups = read_vary(varied_text, trainer)
        strong_assignments += of_flags({"control": next(iter(altered_groups))})
    else:
        strong_assignments += _control_of_code(code, (*strong_assignments, *common_assignments))
        altered_groups = {name: [] for name in code} | _read_alterations(group)

    def layer(written_assignments: Iterable[Assignment], *, in_group: bool = False) -> Layer:
        return _check_layer(_add_prefix(written_assignments, trainer), free=bool(trainer), in_group=in_group)

    return Request(
        groups=groups or file.groups,
        folder=Path.cwd() if groups else file.folder,
        alone=bool(groups),
        weak=layer(common_assignments),
        strong=layer(strong_assignments),
        tables={name: layer(table, in_group=True) for name, table in file.tables.items()},
        altered={name: layer(table, in_group=True) for name, table in altered_groups.items()},
        tasks=tuple(tasks) if len(tasks) > 1 else (),
        task_folder=Path.cwd() if "task" in (flags or {}) else file.folder,
        by_task={name: layer(table) for name, table in by_task.items()},
        margins=margins,
        launcher=file.launcher,
    )


def _control_of_code(code: Mapping[str, str], assignments: Iterable[Assignment]) -> list[Assignment]:
    """Return a setting by which the first of several states is the one that others are compared with, unless given."""
    if not code or any(assignment.key == "control" for assignment in assignments):
        return []
    return of_flags({"control": next(iter(code))})


def _settle_task(tasks: Sequence[str], flags: dict[str, object], file: FileSettings) -> list[Assignment]:
    """Return the file's common assignments, without the task unless it counts; set or remove the task in `flags`."""
    flagged = "task" in flags
    if len(tasks) > 1:
        flags.pop("task", None)
    elif flagged:
        flags["task"] = tasks[0]
    if flagged or len(tasks) > 1:
        return [assignment for assignment in file.common if assignment.key != "task"]
    return list(file.common)


def _read_code(common: list[Assignment], strong: list[Assignment]) -> tuple[list[Assignment], dict[str, str]]:
    """Return the common assignments with states of the code in one of them, and the state of each group, if any."""
    if not any(assignment.key.partition(".")[0] == CODE for assignment in (*strong, *common)):
        return common, {}
    from esper_ab.settings.code_groups import joined_code, states_of  # most experiments have one state of the code

    joined = list(joined_code(common))
    return joined, states_of((*strong, *joined))


def _take_margins(flags: dict[str, object]) -> str:
    """Remove --margin from `flags` if it gives a margin per task, and return its text; "" if it does not."""
    if isinstance(flags.get("margin"), str):
        return str(flags.pop("margin"))
    return ""


def _find_trainer(assignments: Iterable[Assignment]) -> str:
    """Return the trainer that the first of `assignments` with a trainer names; "" if none does."""
    for assignment in assignments:
        if assignment.key == "trainer" and assignment.value:
            return str(assignment.value)
    return ""


def _task_names(flag: object, file: FileSettings) -> list[str]:
    """Return the tasks from --task or, if that flag is missing, the file; UsageError for an empty or repeated name."""
    if flag is not None:
        names = split_commas(str(flag), "--task")
    else:
        names = _listed_tasks(file)
    for name in names:
        if not name.strip():
            raise UsageError(SettingName("task"), ": a name is missing")
        if names.count(name) > 1:
            raise UsageError(SettingName("task"), f": {name!r} is named twice")
    return names


def _listed_tasks(file: FileSettings) -> list[str]:
    """Return the tasks of a file whose key `task` has a list; [] if it has one task or none."""
    for assignment in file.common:
        if assignment.key == "task" and isinstance(assignment.value, list):
            return [str(name) for name in assignment.value]
    return []


def _add_prefix(written_assignments: Iterable[Assignment], trainer: str) -> Iterable[Assignment]:
    """Prefix dotted keys that are placeholders of a command, "algo.lr" or "trainer.max_epochs", with `trainer.`."""
    names = placeholders(trainer) if is_command(trainer) else ()
    for assignment in written_assignments:
        key = assignment.key
        is_plain = key.startswith(TRAINER) and key.removeprefix(TRAINER) in names
        if "." in key and key in names and key not in FIELDS and not is_plain:
            yield replace(assignment, key=f"{TRAINER}{key}")
        else:
            yield assignment


def _check_layer(written_assignments: Iterable[Assignment], *, free: bool, in_group: bool = False) -> Layer:
    """Check and type the assignments of one layer.

    Raises UsageError for a repeated key, because one of its values would be ignored.
    """
    layer: dict[str, Assignment] = {}
    for assignment in written_assignments:
        key = assignment.key
        _check_key(assignment, in_group=in_group, free=free)
        if key in layer:
            raise UsageError(f"{assignment.origin}: {key} is set twice")
        layer[key] = typed(assignment)
    return layer


def _check_key(assignment: Assignment, *, in_group: bool, free: bool) -> None:
    """Raise UsageError for an unknown key; with `free`, keys of the user's trainer are accepted."""
    key = assignment.key
    if key.startswith(PARAM) or (free and key.startswith(TRAINER)):
        return
    if free and key in FIELDS and not FIELDS[key].of_trainers:
        raise UsageError(f"{assignment.origin}: {key} is a setting for esper_ab's own tasks; {or_of_trainer(key)}")
    if key in FIELDS:
        if FIELDS[key].of_group or not in_group:
            return
        raise UsageError(
            f"{assignment.origin}: {key} cannot differ between groups; use ",
            SettingName(key, "…", assigned=True),
            f" for all groups{f'; {or_of_trainer(key)}' if free else ''}",
        )
    raise UsageError(f"{assignment.origin}: unknown key {key!r}; {_hint(key, in_group=in_group, free=free)}")


def _hint(key: str, *, in_group: bool, free: bool) -> str:
    """Return the end of a message about the unknown key `key`: what the user may have meant."""
    if free and "." not in key:
        return "; ".join(filter(None, (said_otherwise(key), or_of_trainer(key))))
    if hint := said_otherwise(key) or foreign(key):
        return hint
    if key.startswith(TRAINER):
        return "such keys are settings of your own trainer, but this experiment has none"
    known_keys = [name for name, field in FIELDS.items() if field.of_group or not in_group]
    return which_setting(key, [*known_keys, *SHORT])


def _read_alterations(texts: Iterable[str]) -> dict[str, list[Assignment]]:
    altered_groups: dict[str, list[Assignment]] = {}
    for text in texts:
        name, colon, assignment_text = text.partition(":")
        if not colon or not assignment_text.strip():
            raise UsageError(
                f"--group {text}: expected NAME:key=value,key=value, which changes one group; to choose groups, use "
                f"--groups {name or 'shaped,simplified'}"
            )
        for item in split_commas(assignment_text, f"--group {name}"):
            altered_groups.setdefault(name, []).append(read_assignment(item, f"--group {name}:{item}"))
    return altered_groups
