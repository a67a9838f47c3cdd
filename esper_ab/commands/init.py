"""`esper-ab init`: write an experiment file that is ready to run, with every setting as a comment.

Keys, types and defaults come from the settings structs, and descriptions come from the flags' help, so that the file
always agrees with the code. A commented-out setting has no space after the # (`#lr = 0.002`); prose has one.
"""

from __future__ import annotations

import json as json_module
import re
import shlex
from pathlib import Path
from textwrap import wrap
from typing import Literal, get_args, get_origin

import click
import msgspec

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._options import flag_help
from esper_ab.commands._parameters import PATH, json_flag, switch
from esper_ab.contracts import catalog
from esper_ab.contracts.errors import UsageError, refused
from esper_ab.contracts.files_below import create_below, write_below
from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.settings.kind import settings_of
from esper_ab.settings.schema import FIELDS, Field

_SET = ("task", "episodes", "steps", "n_envs", "seeds")  # written with their defaults; other settings are comments
_GROUPS = settings_of(FIELDS["task"].default).default_groups
# What settings without a flag of their own mean.
_MEANINGS = {
    "trainer": "A trainer of your own: a command, as in 'python train.py --seed {seed} --lr {lr} --out {out}', "
    "a Python file, or a function, as in 'train.py:train'.",
    "trainer_folder": "The folder in which a command runs.",
    "outcome": "Name of the outcome that decides, as in 'return'.",
    "outcome_better": "Whether higher or lower outcomes are better; for a trainer, say so.",
}
_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_NAME_CHARS = 128  # longest name of an experiment directory
_WIDTH = 110
_LARGE = 10**15  # larger bounds would not help a reader


@command_with("esper-ab init", "esper-ab init rates.py", "esper-ab init experiment.toml --force")
@click.argument("file", metavar="[FILE.toml|FILE.py]", required=False, type=PATH)
@switch("--gate", "Write gate.toml, the question of `esper-ab gate`, with all its keys.")
@switch("--force", "Replace an existing file.")
@json_flag
def command(file: Path | None, gate: bool, force: bool, json: bool) -> None:
    """Write an experiment file, ready to run, with every setting and its default as a comment."""
    file = file or Path("gate.toml" if gate else "experiment.toml")
    if file.suffix != ".toml" and (gate or file.suffix != ".py"):
        endings = ".toml, as in gate.toml" if gate else ".toml or .py, as in experiment.toml"
        raise UsageError(f"{file}: the file name must end in {endings}")
    line = shell_command("gate" if gate else "launch", file)
    if gate:
        from esper_ab.gate.example import EXAMPLE  # of another room, which a file of an experiment does not need

        _write(file, EXAMPLE, is_forced=force)
    else:
        _write(file, _experiment_file(file), is_forced=force)
    if json:
        click.echo(json_module.dumps({"file": str(file), "run": shlex.split(typeable(line))}))
    else:
        click.echo(typeable(f"wrote {file}\nsee the plan: {line} --dry-run\nrun it: {line}"))


def _experiment_file(file: Path) -> str:
    """Return the text of an experiment file, in the form that the name of the file shows."""
    # Turn the file's stem into a valid name for an experiment directory.
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", file.stem).strip("-_.")[:_NAME_CHARS] or "experiment"
    if file.suffix == ".py":
        return python_file(name)
    return toml_file() if name == file.stem else toml_file(name)


def _write(file: Path, content: str, *, is_forced: bool) -> None:
    """Write the file; UsageError if it exists and is not to be replaced, or if it cannot be written."""
    write = write_below if is_forced else create_below
    try:
        write(file.parent, file.name, content.encode())
    except FileExistsError:
        raise UsageError(f"{file} already exists; --force replaces it") from None
    except OSError as error:
        raise refused(error, f"{file} cannot be written: {error.strerror}") from None


def toml_file(name: str = "") -> str:
    """Return the text of a TOML experiment file, which has the same keys and structure as `experiment.toml`.

    `name` is the name of the experiment; by default the experiment is named after the file.
    """
    lines = [
        "# An experiment of esper-ab. Every setting is here with its default: remove the # in front of one to change",
        "# it. `esper-ab doctor` shows the devices of this machine.",
        "",
        *(f"# {line}" for line in _describe_groups()),
        f"groups = {json_module.dumps(_GROUPS)}",
        "",
    ]
    sections = _sections()
    if name:
        lines.append(f'name = "{name}"')
    for field in sections.pop(""):
        if not (name and field.key == "name"):
            lines += _toml_lines(field)
    lines += _lines("grid", "grid = []", f'{flag_help()["grid"]} As in ["ppo.lr=1e-4,1e-3"].', _WIDTH)
    lines += _lines("scores", 'scores = ""', flag_help()["scores"], _WIDTH)
    lines += [
        "",
        "# A group with settings of its own; keys in its table are dotted:",
        "#[group.fast]",
        '#reward = "shaped"',
        "#ppo.lr = 3e-3",
    ]
    for section, fields in sections.items():
        lines.append("")
        if section_words := _describe_section(section):
            lines.append(f"# {section_words}")
        lines.append(f"[{section}]")
        for field in fields:
            lines += _toml_lines(field)
    return "\n".join(lines) + "\n"


def python_file(name: str) -> str:
    """Return the text of a Python experiment file, which defines `experiment` and has every setting as a comment."""
    settings: list[str] = []
    for section, fields in _sections().items():
        if section_words := _describe_section(section):
            settings.append(f"# {section_words}")
        for field in fields:
            if field.key not in ("name", "seeds"):
                settings += _python_lines(field)
    runs = FIELDS["seeds"].default
    variants = [f'.add_variant("{group}", reward="{group}")' for group in _GROUPS]
    return "\n".join(
        (
            '"""An experiment of esper-ab; run this file with `esper-ab launch`.',
            "",
            "Every setting is here with its default; remove the # in front of one to change it.",
            '"""',
            "",
            "from esper_ab import create_experiment",
            "",
            "experiment = (",
            f'    create_experiment("{name}")',
            *(f"    # {line}" for line in _describe_groups()),
            *(f"    {line}" for line in variants),
            '    #.add_variant("fast", reward="shaped", ppo__lr=3e-3)',
            f"    .set_runs_per_variant({runs})",
            "    .set_base_config(",
            *(f"        {line}" for line in settings),
            "    )",
            "    .build()",
            ")",
            "",
        )
    )


def _describe_groups() -> tuple[str, ...]:
    rewards = catalog.names("workers.kinds.growth.rewards")
    controllers = catalog.names("workers.kinds.growth.controllers")
    return (
        f"One group per training setup. Reward modes: {', '.join(rewards)}.",
        f"Controllers that do not learn: {', '.join(controllers)}.",
    )


def _sections() -> dict[str, list[Field]]:
    """Return all settings by section; the settings of the experiment itself are in section "", which comes first."""
    sections: dict[str, list[Field]] = {"": []}
    for field in sorted(FIELDS.values(), key=lambda field: field.of_group):
        sections.setdefault(field.key.rpartition(".")[0], []).append(field)
    return sections


def _describe_section(section: str) -> str:
    """Describe a section of group settings in one line. Returns "" for a section of the experiment."""
    for field in msgspec.structs.fields(GroupSettings):
        if field.name == section:
            return str(field.type.__doc__).splitlines()[0]
    return ""


def _words(field: Field) -> str:
    """Describe a setting by the help of its flag, if the setting has a flag, and by its allowed values."""
    if field.key == "task":
        allowed_words = f"one of {', '.join(catalog.names('workers.kinds.growth.tasks'))}"
    else:
        allowed_words = allowed(field)
    words = [allowed_words]
    if not field.of_group and not field.flag.startswith("no_"):
        words.insert(0, _MEANINGS.get(field.key) or flag_help().get(field.flag, ""))
    return " ".join(filter(None, words))


def allowed(field: Field) -> str:
    """Describe the allowed values (choices or bounds) of a setting. Returns "" if they are clear from its default."""
    if get_origin(field.type) is Literal:
        choices = get_args(field.type)
        if len(choices) > 1:
            return " | ".join(str(choice) or '""' for choice in choices)
        return "the only value"
    if get_origin(field.type) is tuple:
        return ""
    bounds: list[str] = []
    for meta in getattr(field.bounded, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta):
            bounds += _bounds(meta)
    return ", ".join(bounds)


def _bounds(meta: msgspec.Meta) -> list[str]:
    """Describe the bounds of a number, as in "> 0"."""
    bounds = []
    for name, sign in _SIGNS.items():
        value = getattr(meta, name)
        if value is not None and abs(value) < _LARGE:
            bounds.append(f"{sign} {value:g}")
    return bounds


def _toml_lines(field: Field) -> list[str]:
    name = field.key.rpartition(".")[2]
    words = _words(field)
    if field.key == "trainer":  # so that a table [trainer] can stand beside it
        name = "train"
    if field.default is None:  # TOML has no null, so there is nothing to uncomment
        return [f"# {part}" for part in wrap(f"{name}: {words}", _WIDTH - 2)]
    return _lines(field.key, f"{name} = {json_module.dumps(field.default, ensure_ascii=False)}", words, _WIDTH)


def _python_lines(field: Field) -> list[str]:
    if isinstance(field.default, str | tuple):
        literal = json_module.dumps(field.default)
    else:
        literal = repr(field.default)
    return _lines(field.key, f"{field.key.replace('.', '__')}={literal},", _words(field), _WIDTH - 8)


def _lines(key: str, setting: str, words: str, width: int) -> list[str]:
    """Return the lines for one setting, with `words` after the setting or, if that line would be too long, above it."""
    line = setting if key in _SET else f"#{setting}"
    if not words:
        return [line]
    joined_line = f"{line}  # {words}"
    if len(joined_line) <= width:
        return [joined_line]
    return [*(f"# {part}" for part in wrap(words, width - 2)), line]
