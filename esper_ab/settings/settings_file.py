"""A TOML file of settings: an experiment's own experiment.toml, or one that the user wrote."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from esper_ab.contracts.claim import Claim as ClaimSetting
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.claim_table import Claim, read_claim
from esper_ab.settings.launcher import NOT_GIVEN, AskedLauncher, asked_launcher
from esper_ab.settings.schema import SHORT
from esper_ab.settings.toml_errors import toml_errors


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    """The settings that a TOML file or a Python program declares, as written."""

    folder: Path = Path()  # base of relative paths in `groups`
    groups: tuple[str, ...] = ()
    common: tuple[Assignment, ...] = ()
    tables: dict[str, tuple[Assignment, ...]] = field(default_factory=dict)  # group -> its own settings
    tasks: dict[str, tuple[Assignment, ...]] = field(default_factory=dict)  # task, of several -> its own settings
    grid: tuple[str, ...] = ()  # KEY=V1,V2,…
    grid_origin: str = "grid"  # for messages
    scores: str = ""  # WORST..TARGET, as of --scores
    launcher: AskedLauncher = NOT_GIVEN
    claim: Claim | None = None


NO_FILE = FileSettings()
_CLAIM_SETTINGS = get_args(ClaimSetting)
_TRAINER = re.compile(r"\s*trainer\s*=")
_TRAINER_TABLE = re.compile(r"\s*(\[\s*trainer\s*\]|trainer\s*\.)")


def read_toml(path: Path) -> FileSettings:
    """Read the settings file at `path`.

    Raises UsageError if the file cannot be read or was damaged; if it is not TOML, the message names the line.
    """
    tree = _load_tables(path)
    groups = tree.pop("groups", [])
    launcher = tree.pop("launcher", {})
    tables = tree.pop("group", {})
    tasks = tree.pop("tasks", {})
    grid = tree.pop("grid", [])
    scores = tree.pop("scores", "")
    claim = None
    if "claim" in tree and tree["claim"] not in _CLAIM_SETTINGS:  # else it is what the plan sets out to show
        claim = read_claim(tree.pop("claim"), path.name)
    if not isinstance(groups, list) or not all(isinstance(name, str) for name in groups):
        raise UsageError(f'{path}: groups must be a list of names, as in ["shaped", "simplified"]')
    if not isinstance(grid, list) or not all(isinstance(text, str) for text in grid):
        raise UsageError(f'{path}: grid must be a list of texts, as in ["ppo.lr=1e-4,1e-3"]')
    if not isinstance(scores, str):
        raise UsageError(f'{path}: scores must be a text, as in "0..100"')
    _check_tables(tables, f"{path}: every [group.NAME] must be a table")
    _check_tables(tasks, f"{path}: every [tasks.NAME] must be a table")
    return FileSettings(
        folder=path.parent,
        groups=tuple(groups),
        common=tuple(_leaves(tree, path, ())),
        tables={name: tuple(_leaves(table, path, ("group", name))) for name, table in tables.items()},
        tasks={name: tuple(_leaves(table, path, ("tasks", name))) for name, table in tasks.items()},
        grid=tuple(grid),
        grid_origin=f"{path.name} grid",
        scores=scores,
        launcher=asked_launcher(launcher, f"{path.name} [launcher]", {"launcher": "name"}),
        claim=claim,
    )


def settings_sha256(tree: dict[str, Any]) -> str:
    """Return the sha256 over all settings of a tree; this hash is stored in experiment.toml's [record] table."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True, default=str).encode()).hexdigest()


def _load_tables(path: Path) -> dict[str, Any]:
    """Load the file without its [record] table, whose hash of the settings must match; raises UsageError."""
    with toml_errors(path):
        text = read_regular(path).decode("utf-8-sig")
        try:
            tree = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            _refuse_trainer_beside_table(path, text)
            raise
        record = tree.pop("record", None)  # in an experiment.toml: facts from the time of planning
        sha256 = settings_sha256(tree)
    if record is None:
        return tree
    if not (isinstance(record, dict) and isinstance(record.get("settings"), str)):
        raise UsageError(
            f"{path}: [record] is the table in which esper_ab keeps the hash of the settings, and this one has none; "
            "delete it"
        )
    if record["settings"] != sha256:
        raise UsageError(
            f"{path}: the settings do not match the hash in [record], so they were edited, or the file is damaged; "
            "if you edited a copy on purpose, delete its [record] table"
        )
    return tree


def _refuse_trainer_beside_table(path: Path, text: str) -> None:
    """Raise UsageError if `text`, which is not TOML, sets `trainer` beside a table [trainer], which TOML cannot."""
    lines = text.splitlines()
    if any(map(_TRAINER.match, lines)) and any(map(_TRAINER_TABLE.match, lines)):
        raise UsageError(
            f"{path}: TOML allows no `trainer = …` beside settings of the trainer (trainer.NAME, [trainer]); name it "
            "by `train = …`"
        ) from None


def _check_tables(tables: object, complaint: str) -> None:
    """Raise UsageError with `complaint` unless `tables` is a table of tables."""
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise UsageError(complaint)


def _leaves(tree: dict[str, Any], path: Path, tables_above: tuple[str, ...], prefix: str = "") -> Iterable[Assignment]:
    """Yield the settings of a table and of the tables in it; `tables_above`: names of its parents, for messages."""
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _leaves(value, path, (*tables_above, name), f"{key}.")
            continue
        table = ""
        if tables_above:
            table = f"[{'.'.join(tables_above)}] "
        origin = f"{path.name} {table}{name}"
        if key == "train" and not tables_above:  # as in gate.toml, and beside a table [trainer]
            key = "trainer"
        yield Assignment(SHORT.get(key, key), value, origin, path.parent, is_text=False)
