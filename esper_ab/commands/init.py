"""`esper-ab init`: an experiment file that runs as it is, with every setting there is as a comment.

Keys, types and defaults are read from the settings structs and the words from the flags' own help, so that the file
cannot say anything that does not hold. A setting is commented out without a blank (`#lr = 0.002`), prose with one.
"""

from __future__ import annotations

import json as json_module
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, get_args, get_origin

import click
import msgspec

from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import PATH, flag_help, shared_options
from esper_ab.contracts import catalog
from esper_ab.contracts.below import create_below, write_below
from esper_ab.contracts.errors import UsageError, refused
from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.shell_command import shell_command
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.parse import DEFAULT_GROUPS

_SET = ("task", "episodes", "steps", "n_envs", "seeds")  # written out with their defaults; the others are comments
_FLAGS = {"arithmetic.kernel": "kernel", "arithmetic.threads": "threads"}  # key -> flag, if they differ
_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_NAME_CHARS = 128  # of an experiment directory
_WIDTH = 110
_LARGE = 10**15  # a bound like that is of no use to a reader


@click.command(epilog=epilog("esper-ab init", "esper-ab init rates.py", "esper-ab init experiment.toml --force"))
@click.argument("file", metavar="[FILE.toml|FILE.py]", default="experiment.toml", type=PATH)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@shared_options("json")
def command(file: Path, force: bool, json: bool) -> None:
    """Write an experiment file that runs as it is, with every setting and its default as a comment."""
    if file.suffix not in (".toml", ".py"):
        raise UsageError(f"{file}: the end of its name says what it is: .toml or .py, as in experiment.toml")
    # The name of the file without its ending, as far as an experiment directory can have it.
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", file.stem).strip("-_.")[:_NAME_CHARS] or "experiment"
    content = python_file(name) if file.suffix == ".py" else toml_file("" if name == file.stem else name)
    try:
        (write_below if force else create_below)(file.parent, file.name, content.encode())
    except FileExistsError:
        raise UsageError(f"{file} exists already; --force replaces it") from None
    except OSError as error:
        raise refused(error, f"{file} cannot be written: {error.strerror}") from None
    if json:
        click.echo(json_module.dumps({"file": str(file), "run": ["esper-ab", "run", str(file)]}))
    else:
        line = shell_command("run", file)
        click.echo(f"wrote {file}\nsee what it would do: {line} --dry-run\nrun it: {line}")


def toml_file(name: str = "") -> str:
    """A TOML experiment file: the keys, in the structure, of the `experiment.toml` that an experiment leaves.

    `name`: of the experiment, which without one is called as the file.
    """
    lines = [
        "# An experiment of esper-ab. Every setting is here with its default: remove the # in front of one to change",
        "# it. `esper-ab doctor` says what this machine has.", "", *(f"# {line}" for line in _about_groups()),
        f"groups = {json_module.dumps(DEFAULT_GROUPS)}", "",
    ]
    rows = list(_experiment_rows())
    lines += [f'name = "{name}"'] if name else []
    shown = [row for row in rows if "." not in row[0] and not (name and row[0] == "name")]
    lines += [line for row in shown for line in _toml_lines(*row)]
    lines += ["", "# A group with settings of its own; in its table keys are dotted:", "#[group.fast]",
              '#reward = "shaped"', "#ppo.lr = 3e-3"]  # fmt: skip
    for section in dict.fromkeys(key.partition(".")[0] for key, _, _ in rows if "." in key):
        lines += ["", f"[{section}]"]
        below = [(key.removeprefix(f"{section}."), *row) for key, *row in rows if key.startswith(f"{section}.")]
        lines += [line for row in below for line in _toml_lines(*row)]
    for name, struct in _sections(GroupSettings):
        lines += ["", f"# {(struct.__doc__ or '').splitlines()[0]}", f"[{name}]"]
        lines += [line for row in _rows(struct) for line in _toml_lines(*row)]
    return "\n".join(lines) + "\n"


def python_file(name: str) -> str:
    """A Python experiment file, in which `esper-ab run` finds `experiment`; every setting is a comment in it."""
    rows = list(_experiment_rows())
    settings = [line for row in rows if row[0] not in ("name", "seeds") for line in _python_lines(*row)]
    for section, struct in _sections(GroupSettings):
        settings += [f"# {(struct.__doc__ or '').splitlines()[0]}"]
        settings += [line for key, *row in _rows(struct) for line in _python_lines(f"{section}.{key}", *row)]
    variants = [f'.add_variant("{group}", reward="{group}")' for group in DEFAULT_GROUPS]
    runs = next(value for key, value, _ in rows if key == "seeds")
    return "\n".join((
        '"""An experiment of esper-ab: `esper-ab run` with this file runs it.', "",
        "Every setting is here with its default; remove the # in front of one to change it.", '"""', "",
        "from esper_ab import create_experiment", "", "experiment = (", f'    create_experiment("{name}")',
        *(f"    # {line}" for line in _about_groups()), *(f"    {line}" for line in variants),
        '    #.add_variant("fast", reward="shaped", ppo__lr=3e-3)', f"    .set_runs_per_variant({runs})",
        "    .set_base_config(", *(f"        {line}" for line in settings), "    )", "    .build()", ")", "",
    ))


def _about_groups() -> tuple[str, ...]:
    rewards, controllers = catalog.names("workers.rewards"), catalog.names("workers.controllers")
    return (
        f"One group per training setup. Reward modes: {', '.join(rewards)}.",
        f"Controllers that do not learn: {', '.join(controllers)}.",
    )


def _experiment_rows() -> Iterator[tuple[str, Any, str]]:
    """Rows (dotted key, default, description) of the experiment's own settings."""
    told = flag_help()
    for key, value, allowed in _rows(AskedExperiment):
        if key == "groups":
            continue
        if key == "task":
            allowed = f"one of {', '.join(catalog.names('workers.tasks'))}"
        help_text = told.get(_FLAGS.get(key, key), "")
        yield key, value, " ".join(part for part in (help_text, allowed) if part)


def _sections(struct: type[msgspec.Struct]) -> Iterator[tuple[str, type[msgspec.Struct]]]:
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):  # a trainer's own are not known
            yield field.name, field.type


def _rows(struct: type[msgspec.Struct], above: str = "") -> Iterator[tuple[str, Any, str]]:
    """Rows (key, default, allowed values) of every setting below `struct`."""
    for field in msgspec.structs.fields(struct):
        key = above + field.name
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _rows(field.type, f"{key}.")
        elif get_origin(field.type) is not dict:  # whose keys a user's own code declares
            yield key, None if field.required else field.default, _allowed(field.type)


def _allowed(kind: Any) -> str:
    """The allowed values of a setting: choices of a Literal, bounds of a number, "" when the default says enough."""
    if get_origin(kind) is Literal:
        return " | ".join(str(choice) for choice in get_args(kind)) if len(get_args(kind)) > 1 else "the only value"
    if get_origin(kind) is tuple:
        return ""
    bounds = [
        f"{sign} {value:g}"
        for meta in getattr(kind, "__metadata__", ())
        for name, sign in _SIGNS.items()
        if (value := getattr(meta, name)) is not None and abs(value) < _LARGE
    ]
    return ", ".join(bounds)


def _toml_lines(key: str, value: Any, words: str) -> list[str]:
    if value is None:  # which TOML cannot say: nothing to uncomment, a description alone
        return [f"# {part}" for part in wrap(f"{key}: {words}", _WIDTH - 2)]
    return _lines(key, f"{key} = {json_module.dumps(value, ensure_ascii=False)}", words, _WIDTH)


def _python_lines(key: str, value: Any, words: str) -> list[str]:
    shown = json_module.dumps(value) if isinstance(value, str | tuple) else repr(value)
    return _lines(key, f"{key.replace('.', '__')}={shown},", words, _WIDTH - 8)


def _lines(key: str, setting: str, words: str, width: int) -> list[str]:
    """Lines for one setting: `words` behind it, or above it where the line would be too long."""
    line = setting if key in _SET else f"#{setting}"
    if not words:
        return [line]
    together = f"{line}  # {words}"
    return [together] if len(together) <= width else [*(f"# {part}" for part in wrap(words, width - 2)), line]
