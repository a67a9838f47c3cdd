"""All settings by dotted key, and the conversion of a written value to the type of its key. Independent of file layers.

The type, bounds, default and rules of a setting ("ppo.lr") come from its field. A written value is converted once; its
type is never guessed. A value that does not fit is refused with a one-line error.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.kinds_of_task import GYM_PREFIX, INFO_PREFIX
from esper_ab.contracts.measures import PRINTABLE_WORDS
from esper_ab.contracts.plain_values import expected_instead, shown
from esper_ab.contracts.settings import GroupSettings, Settings, Spec
from esper_ab.contracts.trainer import is_command, names_placeholder
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import did_you_mean
from esper_ab.settings.experiment import AskedExperiment

SHORT = {"reward": "reward.mode", "controller": "controller.name"}
_NO_FUNCTIONS = (GYM_PREFIX, INFO_PREFIX)  # prefixes of names with a colon that are not functions
TOO_MANY_DIGITS = "a whole number has too many digits"  # Python refuses to parse thousands of digits
_SHOWN_CHARS = 60  # of a value, in a message
_CLOSING = {"[": "]", '"': '"', "'": "'"}


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


def _fields(struct: type[Settings], *, of_group: bool, prefix: str = "") -> Iterator[Field]:
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, Settings):
            yield from _fields(field.type, of_group=of_group, prefix=f"{prefix}{field.name}.")
            continue
        metas = getattr(field.type, "__metadata__", ())
        found = next((meta for meta in reversed(metas) if isinstance(meta, Spec)), Spec())
        yield Field(
            key=prefix + field.name,
            type=field.type.__origin__ if metas else field.type,
            bounded=field.type,
            default=field.default,
            spec=found,
            kinds=found.kinds or struct.kinds,
            of_group=of_group,
            flag=found.flag or prefix + field.name,
        )


_PARAMS = "reward.params"
PARAM = f"{_PARAMS}."  # prefix of keys that a user's function declares
TRAINER = "trainer."  # prefix of a trainer's own settings, which its file or command declares
DECLARED = (PARAM, TRAINER)  # prefixes of keys that users' code declares
GROUP_FIELDS = {field.key: field for field in _fields(GroupSettings, of_group=True)}
EXPERIMENT_FIELDS = {field.key: field for field in _fields(AskedExperiment, of_group=False) if field.key != "groups"}
FIELDS = {key: field for key, field in GROUP_FIELDS.items() if f"{key}." not in DECLARED} | EXPERIMENT_FIELDS


@dataclass(frozen=True)
class Assignment:
    """The assignment `key` = `value`.

    Text from the command line is converted to the type of the key; a TOML value must already have that type.
    """

    key: str
    value: Any
    origin: str  # for messages: "--set ppo.lr=3", "run.toml [ppo] lr"
    folder: Path  # base of relative paths in the value
    is_text: bool


def refuse_unknown(what: str, name: str, known: Collection[str], where: str = "") -> None:
    """Raise UsageError, with similar names, if `name` is not in `known`."""
    if name not in known:
        raise UsageError(f"{where}no {what} {name!r}; {did_you_mean(name, known)}")


def of_group(key: str) -> bool:
    """Whether groups may differ in the setting `key`."""
    return key.startswith(DECLARED) or (key in FIELDS and FIELDS[key].of_group)


def split_commas(text: str, origin: str) -> list[str]:
    """Split at commas outside brackets and quotes, and strip the pieces; UsageError if a bracket or quote is open."""
    pieces = []
    piece = ""
    open_until = ""
    for char in text:
        if open_until:
            if char == open_until:
                open_until = ""
        elif char == ",":
            pieces.append(piece.strip())
            piece = ""
            continue
        elif char in _CLOSING:
            open_until = _CLOSING[char]
        piece += char
    if open_until:
        raise UsageError(f"{origin}: missing a closing {open_until}")
    return [*pieces, piece.strip()]


def read_assignment(text: str, origin: str) -> Assignment:
    """Parse `key=value` from the command line; raises UsageError for anything else."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{origin}: {text!r} is not key=value, as in ppo.lr=1e-3")
    key = key.strip()
    return Assignment(SHORT.get(key, key), value.strip(), origin, Path.cwd(), is_text=True)


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _read_value(text: str, kind: Any, origin: str) -> object:
    """Prepare text for msgspec's conversion to `kind`: a list for a tuple, digits only for an integer."""
    if get_origin(kind) is tuple:
        if not (text.startswith("[") and text.endswith("]")):
            raise UsageError(f"{origin}: expected a list, as in [a,b], not {text!r}")
        inner = text[1:-1].strip()
        if inner:
            return [_unquote(piece) for piece in split_commas(inner, origin)]
        return []
    if kind is bool and text not in ("true", "false"):
        raise UsageError(f"{origin}: expected true or false, not {text!r}")
    base = get_args(kind)[0] if get_origin(kind) is not Literal and get_args(kind) else kind
    if base is int and not re.fullmatch(r"[+-]?\d+", text):
        raise UsageError(f"{origin}: expected a whole number, not {text!r}")
    return _unquote(text)


def typed(assignment: Assignment) -> Assignment:
    """Return the assignment with its value converted to the type of its key; UsageError if the value does not fit."""
    return replace(assignment, value=convert_value(assignment), is_text=False)


def convert_value(assignment: Assignment) -> Any:
    """Convert the value to the type of its key.

    Raises UsageError if the value does not fit; the message names the expected type.
    """
    _check_carried(assignment, assignment.value)
    if assignment.key.startswith(PARAM):
        return _constant(assignment)
    if assignment.key.startswith(TRAINER):
        return _own_value(assignment)
    field = FIELDS[assignment.key]
    value = assignment.value
    if isinstance(value, str) and assignment.is_text:
        raw = _read_value(value, field.type, assignment.origin)
    else:
        raw = value
    try:
        result = msgspec.convert(raw, type=field.bounded, strict=not assignment.is_text)
    except msgspec.ValidationError as error:
        raise UsageError(f"{assignment.origin}: {_instead(field, raw, value, str(error))}") from None
    _check_carried(assignment, result)
    return _absolute(result, field.spec.names, assignment.folder)


def _instead(field: Field, raw: object, value: object, said: str) -> str:
    """Describe what was expected instead of `value`; the text `said` is msgspec's error about `raw`."""
    if get_origin(field.type) is Literal:
        return f"unknown value {raw!r}; {did_you_mean(str(raw), [str(choice) for choice in get_args(field.type)])}"
    if words := _words(field.type):
        return f"expected a positive whole number, or {words}, not {value!r}"
    most = next((one.max_length for one in getattr(field.bounded, "__metadata__", ()) if isinstance(one, Meta)), None)
    if most is not None and isinstance(value, str):
        return f"expected at most {most} characters, {PRINTABLE_WORDS}, not '{visible_line(value, _SHOWN_CHARS)}'"
    expected = said.split(", got")[0].split(" - at")[0].replace("`", "")
    return f"{expected[0].lower()}{expected[1:]}, not {value!r}"


def _absolute(value: Any, names: str, folder: Path) -> Any:
    """Make the path in a value absolute, because another process may load it from elsewhere."""
    if names == "function" and not value.startswith(_NO_FUNCTIONS):
        return _make_absolute(value, folder)
    if value and (names == "folder" or (names == "trainer" and not is_command(value))):
        return str((folder / Path(value).expanduser()).resolve())
    return value


def _check_carried(assignment: Assignment, value: object) -> None:
    """Raise UsageError for a value that a message or a file could not hold unchanged."""
    parts = value if isinstance(value, list | tuple) else (value,)
    for part in parts:
        if expected := expected_instead(part):
            number = assignment.key.startswith(TRAINER) and not isinstance(part, str)
            remedy = f"; for a command, write the number as text, '{part}'" if number else ""
            raise UsageError(f"{assignment.origin}: expected {expected}, not {shown(part)}{remedy}")


def _constant(assignment: Assignment) -> bool | int | float | str:
    """Return a constant of a user's function, parsed as TOML if possible; the preflight checks its type."""
    value = assignment.value
    if assignment.is_text and isinstance(value, str):
        try:
            value = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            value = _unquote(value)
        except ValueError:
            raise UsageError(f"{assignment.origin}: {TOO_MANY_DIGITS}") from None
    if not isinstance(value, bool | int | float | str):
        text = f"expected a finite number, true, false or text, not {assignment.value!r}"
        raise UsageError(f"{assignment.origin}: {text}")
    _check_carried(assignment, value)
    return value


def _own_value(assignment: Assignment) -> bool | int | float | str:
    """Return a trainer's own setting as written; text is converted by the preflight, which finds out the type."""
    key = assignment.key
    value = assignment.value
    origin = assignment.origin
    name = key.removeprefix(TRAINER)
    if not (name.isidentifier() or names_placeholder(name)):
        raise UsageError(f"{origin}: {key!r} is not a trainer's setting; write {TRAINER}NAME, as in trainer.lr")
    if not isinstance(value, bool | int | float | str):
        raise UsageError(f"{origin}: expected true or false, a number or text, not {value!r}")
    if isinstance(value, str) and assignment.is_text:
        return _unquote(value)
    return value


def _words(kind: Any) -> str:
    """Return the words that a setting of type `kind` accepts instead of a number; "" if it accepts none."""
    choices = [choice for part in get_args(kind) if get_origin(part) is Literal for choice in get_args(part)]
    return " or ".join(map(str, choices))


def _make_absolute(mode: str, folder: Path) -> str:
    """Make the path in `path.py:function` absolute, and turn a `module:function` in `folder` into such a path."""
    path, colon, function = mode.rpartition(":")
    if colon and path.endswith(".py"):
        return f"{(folder / Path(path).expanduser()).resolve()}:{function}"
    parts = path.split(".")
    if colon and all(part.isidentifier() for part in parts):
        module = folder.joinpath(*parts)
        for file in (module / "__init__.py", module.with_suffix(".py")):
            if file.is_file():
                return f"{file.resolve()}:{function}"
    return mode
