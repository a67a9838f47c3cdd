"""Write docs/internals/settings.md: every key of a settings file, with its default, values and meaning.

    .venv/bin/python scripts/settings_page.py

Keys, defaults and values are those of the settings structs, and meanings are the comments beside their fields. A key
with a flag of `launch` refers to docs/cli.md, which describes the flags. tests/docs/test_settings_page.py compares the
page with what this would write.
"""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Literal, get_args, get_origin

from esper_ab.commands._launch_flags import LaunchFlags
from esper_ab.commands.init import allowed
from esper_ab.contracts import settings as group_settings
from esper_ab.contracts.settings import EVERY_KIND, POLICIES
from esper_ab.settings import experiment as experiment_settings
from esper_ab.settings.schema import FIELDS, Field

PAGE = Path(__file__).resolve().parents[1] / "docs" / "internals" / "settings.md"
_SECTIONS = {
    "": ("AskedExperiment", "ExperimentSettings"),
    "arithmetic": ("AskedArithmetic", "ProcessArithmetic"),
    "controller": ("ControllerSettings",),
    "policy": ("PolicySettings",),
    "ppo": ("PPOSettings",),
    "growth": ("GrowthSettings",),
    "reward": ("RewardSettings",),
    "gym": ("GymSettings",),
}
_READERS = {EVERY_KIND: "all", POLICIES: "growth, gymnasium"}
_INTRODUCTION = """# Every key of a settings file

You write an experiment in TOML and look for a key. Written by `scripts/settings_page.py` from the types;
[cli.md](../cli.md#from-a-file) says how a file is made up, and describes each flag. `esper-ab init` writes a file with
all of these keys as comments. "Read by" names the kinds of task: growth, gymnasium, trainer.

Besides, a file has `groups`, `[group.NAME]`, `[tasks.NAME]`, `grid`, `scores`, `train`, `[claim]` and `[launcher]`
([cli.md](../cli.md#from-a-file)), `[trainer]` with the settings of [your trainer](../your-trainer.md), and
`[reward.params]` with those of [your reward](../rewards.md#a-reward-of-your-own).
"""
_MARK = "tables of settings"  # around lines that may be wider than those of people
_TITLES = {
    "": "The experiment",
    "reward": "`[reward]`: the mode and its constants ([formulas](rewards.md))",
    "policy": "`[policy]`: the actor-critic ([more](training.md))",
    "ppo": "`[ppo]`: the update of the policy",
}


def page() -> str:
    """Return the text of the page."""
    meanings = comments_of(inspect.getsource(group_settings)) | comments_of(inspect.getsource(experiment_settings))
    parts = [_INTRODUCTION, f"<!-- {_MARK} -->"]
    for section, classes in _SECTIONS.items():
        fields = [field for field in FIELDS.values() if field.key.rpartition(".")[0] == section]
        rows = [_row(field, classes, meanings) for field in fields]
        title = _TITLES.get(section, f"`[{section}]`")
        parts.append(
            f"## {title}\n\n| key | default | values | read by | meaning |\n|---|---|---|---|---|\n"
            + "\n".join(rows)
            + "\n"
        )
    return "\n".join((*parts, f"<!-- /{_MARK} -->\n"))


def comments_of(source: str) -> dict[tuple[str, str], str]:
    """Return the comment beside or above each field of each class, by class and field."""
    lines = source.splitlines()
    comments = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    comments[node.name, statement.target.id] = _comment(lines, statement)
    return comments


def _comment(lines: list[str], statement: ast.AnnAssign) -> str:
    """Return the comment behind a statement or, without one, the lines of comments above it."""
    assert statement.end_lineno is not None
    _, hash_sign, behind = lines[statement.end_lineno - 1][statement.end_col_offset :].partition("#")
    if hash_sign:
        return behind.strip()
    above: list[str] = []
    for line in reversed(lines[: statement.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        above.insert(0, line.strip().removeprefix("#").strip())
    return " ".join(above)


def _row(field: Field, classes: tuple[str, ...], meanings: dict[tuple[str, str], str]) -> str:
    """Return the row of a key: its meaning is that of its flag, or the comment beside its field."""
    name = field.key.rpartition(".")[2]
    words = next(filter(None, (meanings.get((struct, name), "") for struct in classes)), "")
    if field.flag in LaunchFlags.__struct_fields__:
        words = f"`--{field.flag.replace('_', '-')}`"
    default = "" if field.default is None else f"`{json.dumps(field.default, ensure_ascii=False)}`"
    readers = ", ".join(_READERS.get(kind, kind) for kind in field.kinds)
    return (
        f"| `{field.key}` | {default} | {_values(field)} | {readers} | {words.replace('|', 'or').removesuffix('.')} |"
    )


def _values(field: Field) -> str:
    """Return the allowed values or bounds of a key; "" if its default shows them."""
    if get_origin(field.type) is Literal:
        return ", ".join(f"`{choice}`" if choice else '`""`' for choice in get_args(field.type))
    return allowed(field)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
