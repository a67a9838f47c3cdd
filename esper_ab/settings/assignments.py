"""One setting as it was written, and how it becomes a typed value. Knows the schema, not the layers of a file.

A key is dotted ("ppo.lr"). Its text is typed by the schema: never guessed, and refused with one line when it is not of
that type.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.kinds import GYM_PREFIX
from esper_ab.contracts.plain_values import expected_instead, shown
from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.trainer import is_command
from esper_ab.settings.experiment import AskedExperiment

SHORT = {"reward": "reward.mode", "controller": "controller.name"}
_NO_PLACES = (GYM_PREFIX, "info:")  # names with a colon that are no functions
TOO_MANY_DIGITS = "a whole number has more digits than can be read"  # of thousands Python reads none
_CLOSING = {"[": "]", '"': '"', "'": "'"}


@dataclass(frozen=True)
class Assignment:
    """`key` = `value`; text from the command line is typed by the schema, a TOML value must already have the type."""

    key: str
    value: object
    origin: str  # for messages: "--set ppo.lr=3", "run.toml [ppo] lr"
    folder: Path  # where relative paths in the value begin
    is_text: bool


def _flatten(struct: type[msgspec.Struct], prefix: str = "", of: Literal["type", "default"] = "type") -> dict[str, Any]:
    """Return the types, or the defaults, of all settings below `struct` by dotted key."""
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            fields |= _flatten(field.type, f"{prefix}{field.name}.", of)
        else:
            fields[prefix + field.name] = getattr(field, of)
    return fields


_PARAMS = "reward.params"
PARAM = f"{_PARAMS}."  # begins the keys that a user's own function declares
TRAINER = "trainer."  # begins the keys of a trainer's own settings, which its file or command declares
GROUP_KEYS = {key: kind for key, kind in _flatten(GroupSettings).items() if f"{key}." not in (PARAM, TRAINER)}
_DEFAULTS = _flatten(GroupSettings, of="default") | _flatten(AskedExperiment, of="default")
EXPERIMENT_KEYS = {key: kind for key, kind in _flatten(AskedExperiment).items() if key != "groups"}


def of_group(key: str) -> bool:
    """Whether a key is one of those that may differ between groups."""
    return key in GROUP_KEYS or key.startswith((PARAM, TRAINER))


def is_default(assignment: Assignment) -> bool:
    """Whether a known key is given the value that it has unasked; keys that a user's own code declares have none."""
    keys = GROUP_KEYS | EXPERIMENT_KEYS
    return assignment.key in keys and convert_value(assignment, keys) == _DEFAULTS[assignment.key]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """End a sentence about an unknown name with those that are close, or with all there are."""
    known = list(known)
    return _close(name, known) or f"there is {', '.join(known) or 'none'}"


def which_setting(key: str, known: Iterable[str]) -> str:
    """End a sentence about an unknown setting with those that are close, or with where all are: they are too many."""
    return _close(key, list(known)) or "see docs/cli.md, or what `esper-ab init` writes"


def _close(name: str, known: list[str]) -> str:
    last = name.rpartition(".")[2]
    ends = [key for key in known if key.rpartition(".")[2] == last]
    close = ends or difflib.get_close_matches(name, known, n=3)
    return f"did you mean {' or '.join(close)}?" if close else ""


def split_commas(text: str, origin: str) -> list[str]:
    """Split `text` at commas that are in no brackets and no quotes; pieces are stripped."""
    pieces, piece, open_until = [], "", ""
    for char in text:
        if open_until:
            open_until = "" if char == open_until else open_until
        elif char == ",":
            pieces.append(piece.strip())
            piece = ""
            continue
        elif char in _CLOSING:
            open_until = _CLOSING[char]
        piece += char
    if open_until:
        raise UsageError(f"{origin}: no closing {open_until}")
    return [*pieces, piece.strip()]


def read_assignment(text: str, origin: str) -> Assignment:
    """Read `key=value` of the command line; UsageError for anything else."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{origin}: {text!r} is not key=value, as in ppo.lr=1e-3")
    key = key.strip()
    return Assignment(SHORT.get(key, key), value.strip(), origin, Path.cwd(), is_text=True)


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text


def _read_value(text: str, kind: Any, origin: str) -> object:
    """Read text as what msgspec may convert to `kind`: a list for a tuple, digits only for an integer."""
    if get_origin(kind) is tuple:
        if not (text.startswith("[") and text.endswith("]")):
            raise UsageError(f"{origin}: expected a list, as in [a,b], not {text!r}")
        inner = text[1:-1].strip()
        return [_unquote(piece) for piece in split_commas(inner, origin)] if inner else []
    if kind is bool and text not in ("true", "false"):
        raise UsageError(f"{origin}: expected true or false, not {text!r}")
    base = get_args(kind)[0] if get_origin(kind) is not Literal and get_args(kind) else kind
    if base is int and not re.fullmatch(r"[+-]?\d+", text):
        raise UsageError(f"{origin}: expected a whole number, not {text!r}")
    return _unquote(text)


def convert_value(assignment: Assignment, keys: dict[str, Any]) -> Any:
    """Convert the value to the type that its key has in `keys`; UsageError saying what was expected there."""
    _check_carried(assignment, assignment.value)
    if assignment.key.startswith(PARAM):
        return _constant(assignment)
    if assignment.key.startswith(TRAINER):
        return _own_value(assignment)
    kind, value = keys[assignment.key], assignment.value
    raw = _read_value(value, kind, assignment.origin) if isinstance(value, str) and assignment.is_text else value
    try:
        result = msgspec.convert(raw, type=kind, strict=not assignment.is_text)
    except msgspec.ValidationError as error:
        if get_origin(kind) is Literal:
            hint = did_you_mean(str(raw), [str(choice) for choice in get_args(kind)])
            raise UsageError(f"{assignment.origin}: no {raw!r}; {hint}") from None
        if words := _words(kind):
            expected = f"a whole number from 1 up, or {words}"
            raise UsageError(f"{assignment.origin}: expected {expected}, not {value!r}") from None
        expected = str(error).split(", got")[0].split(" - at")[0].replace("`", "")
        raise UsageError(f"{assignment.origin}: {expected[0].lower()}{expected[1:]}, not {value!r}") from None
    _check_carried(assignment, result)
    is_place = assignment.key == "reward.mode" or (assignment.key in ("task", "outcome") and ":" in result)
    if is_place and not result.startswith(_NO_PLACES):
        return _make_absolute(result, assignment.folder)
    if (assignment.key in ("data_dir", "trainer_folder") and result) or (
        assignment.key == "trainer" and result and not is_command(result)
    ):
        return str((assignment.folder / Path(result).expanduser()).resolve())
    return result


def _check_carried(assignment: Assignment, value: object) -> None:
    """UsageError for a value that would not reach a worker, or no file, as it is."""
    parts = value if isinstance(value, list | tuple) else (value,)
    for part in parts:
        if expected := expected_instead(part):
            number = assignment.key.startswith(TRAINER) and not isinstance(part, str)
            remedy = f"; a command takes it as text, '{part}'" if number else ""
            raise UsageError(f"{assignment.origin}: expected {expected}, not {shown(part)}{remedy}")


def _constant(assignment: Assignment) -> bool | int | float | str:
    """Return a constant of a user's own function, which its declaration types; text that is no TOML value is text."""
    value = assignment.value
    if assignment.is_text and isinstance(value, str):
        try:
            value = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            value = _unquote(value)
        except ValueError:
            raise UsageError(f"{assignment.origin}: {TOO_MANY_DIGITS}") from None
    if not isinstance(value, bool | int | float | str):
        text = f"expected a finite number, true, false or a text, not {assignment.value!r}"
        raise UsageError(f"{assignment.origin}: {text}")
    _check_carried(assignment, value)
    return value


def _own_value(assignment: Assignment) -> bool | int | float | str:
    """Return a trainer's own setting as it was written; the preflight, which has its type, converts text."""
    key, value, origin = assignment.key, assignment.value, assignment.origin
    if not key.removeprefix(TRAINER).isidentifier():
        raise UsageError(f"{origin}: {key!r} names no setting of a trainer; one is {TRAINER}NAME, as in trainer.lr")
    if not isinstance(value, bool | int | float | str):
        raise UsageError(f"{origin}: expected true or false, a number or text, not {value!r}")
    return _unquote(value) if isinstance(value, str) and assignment.is_text else value


def _words(kind: Any) -> str:
    """Return the words that may stand for a number of type `kind`; "" where only a number may."""
    choices = [choice for part in get_args(kind) if get_origin(part) is Literal for choice in get_args(part)]
    return " or ".join(map(str, choices))


def _make_absolute(mode: str, folder: Path) -> str:
    """Give `path.py:function`, and `module:function` of a module in `folder`, an absolute path; leave others.

    Nobody who loads it later, in another process or a resumed run, has to be where this one is.
    """
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
