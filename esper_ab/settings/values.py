"""Convert a written value to the type of its key, once; its type is never guessed.

A value that does not fit is refused with a one-line error.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from esper_ab.contracts.code_state import is_folder
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.kinds_of_task import GYM_PREFIX, INFO_PREFIX, may_be_function
from esper_ab.contracts.measures import PRINTABLE_WORDS
from esper_ab.contracts.plain_values import describe_value, expected_instead
from esper_ab.contracts.trainer import is_command, is_function, names_placeholder
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import did_you_mean
from esper_ab.settings.assignments import Assignment, split_commas
from esper_ab.settings.schema import FIELDS, PARAM, TRAINER, Field

TOO_MANY_DIGITS = "a whole number has too many digits"  # Python refuses to parse thousands of digits
_NO_FUNCTIONS = (GYM_PREFIX, INFO_PREFIX)  # prefixes of names with a colon that are not functions
_SHOWN_CHARS = 60  # of a value, in a message


def typed(assignment: Assignment) -> Assignment:
    """Return the assignment with its value converted to the type of its key; UsageError if the value does not fit."""
    return replace(assignment, value=convert_value(assignment), is_text=False)


def convert_value(assignment: Assignment) -> Any:
    """Convert the value to the type of its key.

    Raises UsageError if the value does not fit; the message names the expected type.
    """
    _check_storable(assignment, assignment.value)
    if assignment.key.startswith(PARAM):
        return _convert_reward_param(assignment)
    if assignment.key.startswith(TRAINER):
        return _check_trainer_value(assignment)
    field = FIELDS[assignment.key]
    value = assignment.value
    if isinstance(value, str) and assignment.is_text:
        raw = _read_text(value, field.type, assignment.origin)
    else:
        raw = value
    try:
        converted_value = msgspec.convert(raw, type=field.bounded, strict=not assignment.is_text)
    except msgspec.ValidationError as error:
        raise UsageError(f"{assignment.origin}: {_describe_misfit(field, raw, value, str(error))}") from None
    _check_storable(assignment, converted_value)
    return _resolve_path(converted_value, field.spec.names, assignment.folder)


def _check_storable(assignment: Assignment, value: object) -> None:
    """Raise UsageError for a value that a message or a file could not hold unchanged."""
    parts = value if isinstance(value, list | tuple) else (value,)
    for part in parts:
        if expected := expected_instead(part):
            remedy = ""
            if assignment.key.startswith(TRAINER) and not isinstance(part, str):
                remedy = f"; for a command, write the number as text, '{part}'"
            raise UsageError(f"{assignment.origin}: expected {expected}, not {describe_value(part)}{remedy}")


def _convert_reward_param(assignment: Assignment) -> bool | int | float | str:
    """Return a parameter of a user's function, parsed as TOML if possible; the preflight checks its type."""
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
    _check_storable(assignment, value)
    return value


def _check_trainer_value(assignment: Assignment) -> bool | int | float | str:
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


def _read_text(text: str, kind: Any, origin: str) -> object:
    """Prepare text for msgspec's conversion to `kind`: a list for a tuple, digits only for an integer."""
    if get_origin(kind) is tuple:
        if not (text.startswith("[") and text.endswith("]")):
            raise UsageError(f"{origin}: expected a list, as in [a,b], not {text!r}")
        inner_text = text[1:-1].strip()
        if inner_text:
            return [_unquote(piece) for piece in split_commas(inner_text, origin)]
        return []
    if kind is bool and text not in ("true", "false"):
        raise UsageError(f"{origin}: expected true or false, not {text!r}")
    base = kind
    if get_origin(kind) is not Literal and get_args(kind):  # a union: its first member
        base = get_args(kind)[0]
    if base is int and not re.fullmatch(r"[+-]?\d+", text):
        raise UsageError(f"{origin}: expected a whole number, not {text!r}")
    return _unquote(text)


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _describe_misfit(field: Field, raw: object, value: object, complaint: str) -> str:
    """Describe what was expected instead of `value`; `complaint` is msgspec's error about `raw`."""
    if get_origin(field.type) is Literal:
        return f"unknown value {raw!r}; {did_you_mean(str(raw), [str(choice) for choice in get_args(field.type)])}"
    if words := _accepted_words(field.type):
        return f"expected a positive whole number, or {words}, not {value!r}"
    max_length = _max_length(field.bounded)
    if max_length is not None and isinstance(value, str):
        text = visible_line(value, _SHOWN_CHARS)
        return f"expected at most {max_length} characters, {PRINTABLE_WORDS}, not '{text}'"
    expected = complaint.split(", got")[0].split(" - at")[0].replace("`", "")
    remedy = "; for as many as are needed, set open_ended = true" if field.key == "seeds" and raw == "auto" else ""
    return f"{expected[0].lower()}{expected[1:]}, not {value!r}{remedy}"


def _max_length(bounded_type: Any) -> int | None:
    """Return the most characters that an annotated type allows; None without a limit."""
    for meta in getattr(bounded_type, "__metadata__", ()):
        if isinstance(meta, Meta):
            return meta.max_length
    return None


def _accepted_words(kind: Any) -> str:
    """Return the words that a setting of type `kind` accepts instead of a number; "" if it accepts none."""
    words: list[str] = []
    for part in get_args(kind):
        if get_origin(part) is Literal:
            words += [str(choice) for choice in get_args(part)]
    return " or ".join(words)


def _resolve_path(value: Any, names: str, folder: Path) -> Any:
    """Make the path in a value absolute, because another process may load it from elsewhere.

    `names` tells what a value names (see Spec): only functions, folders and trainers have paths, and tasks that are
    functions. A task `NAME:REST` of a kind NAME is none, whatever files the folder has.
    """
    if names == "code":
        return tuple(_resolve_state(entry, folder) for entry in value)
    if names == "task" and may_be_function(value):
        return _resolve_function(value, folder)
    if names == "function" and not value.startswith(_NO_FUNCTIONS):
        return _resolve_function(value, folder)
    if names == "trainer" and is_function(value):
        return _resolve_function(value, folder, folder / "src")
    if value and (names == "folder" or (names == "trainer" and not is_command(value))):
        return str((folder / Path(value).expanduser()).resolve())
    return value


def _resolve_state(entry: str, folder: Path) -> str:
    """Make the folder in `NAME=FOLDER` absolute; anything else stays as it is written."""
    name, equals_sign, state = (part.strip() for part in entry.partition("="))
    if equals_sign and is_folder(state):
        return f"{name}={(folder / Path(state).expanduser()).resolve()}"
    return entry


def _resolve_function(function: str, folder: Path, *sources: Path) -> str:
    """Make the path in `path.py:name` absolute, and turn a `module:name` into such a path.

    Modules are searched in `folder` and in `sources`; elsewhere, they are found by the process that imports them.
    """
    path, colon, name = function.rpartition(":")
    if colon and path.endswith(".py"):
        return f"{(folder / Path(path).expanduser()).resolve()}:{name}"
    parts = path.split(".")
    if colon and all(part.isidentifier() for part in parts):
        modules = [source.joinpath(*parts) for source in (folder, *sources)]
        for file in (path for module in modules for path in (module / "__init__.py", module.with_suffix(".py"))):
            if file.is_file():
                return f"{file.resolve()}:{name}"
    return function
