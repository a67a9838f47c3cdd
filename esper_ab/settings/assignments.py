"""Every setting by its dotted key, and how one that was written becomes a typed value. Knows no layers of a file.

Type, bounds, default and rules of a setting ("ppo.lr") are read from its field. What is written for it is typed by
them, once: never guessed, and refused with one line when it does not fit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import (
    GYM_PREFIX,
    INFO_PREFIX,
    GroupSettings,
    KindName,
    Settings,
    Spec,
    expected_instead,
    shown,
)
from esper_ab.contracts.trainer import is_command
from esper_ab.contracts.wording import did_you_mean
from esper_ab.settings.experiment import AskedExperiment

# --- foreign keys ----------------------------------------------------------------------------------------------------
# Keys of other trainers and of Hydra, and what they are called here: for messages only, no setting is read by them.
#
# People bring files written for something else. Their keys are refused as any unknown key is; where there is one of
# ours that means the same, the message names it.


# Keys of ours -> last parts of foreign keys that say the same. A test holds them against the schema.
_THEIRS = {
    ("ppo.lr",): ("learning_rate",),
    ("total_timesteps",): ("num_timesteps",),
    ("steps",): ("max_steps", "rollout_length"),
    ("n_envs", "max_parallel"): ("num_workers",),
    ("n_envs",): ("num_envs",),
    ("rng_seed",): ("seed",),
    ("seeds",): (
        "replicates", "runs_per_variant", "n_runs", "num_seeds", "n_seeds", "pairs", "repeats", "repetitions", "trials",
    ),
    ("devices",): ("device", "num_gpus", "gpus"),
    ("task",): ("env", "env_name", "env_id"),
    ("eval_episodes",): ("evaluate_interval",),
    ("ppo.epochs",): ("update_epochs", "num_epochs"),
    ("ppo.minibatches",): ("num_minibatches", "minibatch_size"),
    ("ppo.gamma",): ("discount",),
    ("ppo.clip",): ("clip_coef", "clip_range"),
    ("ppo.entropy_coef",): ("ent_coef",),
    ("ppo.value_coef",): ("vf_coef",),
    ("policy.hidden",): ("hidden_size", "hidden_dim"),
}
OURS = {theirs: ours for ours, names in _THEIRS.items() for theirs in names}
# Those that have no counterpart, and why not.
_NONE = {
    "defaults": "Hydra's defaults list has no counterpart here: every setting has its default and is named by its key",
    "curriculum": "there is no curriculum here; what hosts learn is the experiment's task",
    "simulation": "there is no simulation section here; the finished policy is evaluated in eval_episodes episodes",
}


def foreign(key: str) -> str:
    """The end of a sentence about a key of another trainer; "" for one that nobody is known to use.

    `key`: dotted, as "trainer.learning_rate".
    """
    parts = key.split(".")
    if ours := OURS.get(parts[-1]):
        return f"here that is {' and '.join(ours)}"
    return next((_NONE[part] for part in parts if part in _NONE), "")


SHORT = {"reward": "reward.mode", "controller": "controller.name"}
_NO_FUNCTIONS = (GYM_PREFIX, INFO_PREFIX)  # begin names with a colon that are none
TOO_MANY_DIGITS = "a whole number has more digits than can be read"  # of thousands Python reads none
_CLOSING = {"[": "]", '"': '"', "'": "'"}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One setting: what its field in the settings structs says."""

    key: str  # "ppo.lr"
    type: Any  # without its annotations
    bounded: Any  # with them
    default: Any
    spec: Spec
    kinds: tuple[KindName, ...]  # of task that read it
    of_group: bool  # whether groups may differ in it
    flag: str  # its flag, in Python's spelling, if it has one


def _fields(struct: type[Settings], *, of_group: bool, prefix: str = "") -> Iterator[Field]:
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, Settings):
            yield from _fields(field.type, of_group=of_group, prefix=f"{prefix}{field.name}.")
            continue
        metas = getattr(field.type, "__metadata__", ())
        found = next((meta for meta in reversed(metas) if isinstance(meta, Spec)), Spec())
        yield Field(
            key=prefix + field.name, type=field.type.__origin__ if metas else field.type, bounded=field.type,
            default=field.default, spec=found, kinds=found.kinds or struct.kinds, of_group=of_group,
            flag=found.flag or prefix + field.name,
        )  # fmt: skip


_PARAMS = "reward.params"
PARAM = f"{_PARAMS}."  # begins the keys that a user's own function declares
TRAINER = "trainer."  # begins the keys of a trainer's own settings, which its file or command declares
DECLARED = (PARAM, TRAINER)  # keys that users' code declares
GROUP_FIELDS = {field.key: field for field in _fields(GroupSettings, of_group=True)}
EXPERIMENT_FIELDS = {field.key: field for field in _fields(AskedExperiment, of_group=False) if field.key != "groups"}
FIELDS = {key: field for key, field in GROUP_FIELDS.items() if f"{key}." not in DECLARED} | EXPERIMENT_FIELDS


@dataclass(frozen=True)
class Assignment:
    """`key` = `value`; text from the command line is typed by the schema, a TOML value must already have the type."""

    key: str
    value: Any
    origin: str  # for messages: "--set ppo.lr=3", "run.toml [ppo] lr"
    folder: Path  # where relative paths in the value begin
    is_text: bool


def refuse_unknown(what: str, name: str, known: Collection[str], where: str = "") -> None:
    """UsageError unless `name` is one of those that are `known`."""
    if name not in known:
        raise UsageError(f"{where}no {what} {name!r}; {did_you_mean(name, known)}")


def of_group(key: str) -> bool:
    """Whether a key is one of those that may differ between groups."""
    return key.startswith(DECLARED) or (key in FIELDS and FIELDS[key].of_group)


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


def typed(assignment: Assignment) -> Assignment:
    """Return it with a value of the type that its key has; UsageError saying what was expected there."""
    return replace(assignment, value=convert_value(assignment), is_text=False)


def convert_value(assignment: Assignment) -> Any:
    """Convert the value to the type that its key has; UsageError saying what was expected there."""
    _check_carried(assignment, assignment.value)
    if assignment.key.startswith(PARAM):
        return _constant(assignment)
    if assignment.key.startswith(TRAINER):
        return _own_value(assignment)
    field, value = FIELDS[assignment.key], assignment.value
    raw = _read_value(value, field.type, assignment.origin) if isinstance(value, str) and assignment.is_text else value
    try:
        result = msgspec.convert(raw, type=field.bounded, strict=not assignment.is_text)
    except msgspec.ValidationError as error:
        raise UsageError(f"{assignment.origin}: {_instead(field, raw, value, str(error))}") from None
    _check_carried(assignment, result)
    return _absolute(result, field.spec.names, assignment.folder)


def _instead(field: Field, raw: object, value: object, said: str) -> str:
    """Return what was expected in place of `value`; `said`: msgspec's words on `raw`."""
    if get_origin(field.type) is Literal:
        return f"no {raw!r}; {did_you_mean(str(raw), [str(choice) for choice in get_args(field.type)])}"
    if words := _words(field.type):
        return f"expected a whole number from 1 up, or {words}, not {value!r}"
    expected = said.split(", got")[0].split(" - at")[0].replace("`", "")
    return f"{expected[0].lower()}{expected[1:]}, not {value!r}"


def _absolute(value: Any, names: str, folder: Path) -> Any:
    """Give what a text names an absolute path: nobody who loads it later, in another process, has to be here."""
    if names == "function" and not value.startswith(_NO_FUNCTIONS):
        return _make_absolute(value, folder)
    if value and (names == "folder" or (names == "trainer" and not is_command(value))):
        return str((folder / Path(value).expanduser()).resolve())
    return value


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
    """Give `path.py:function`, and `module:function` of a module in `folder`, an absolute path; leave others."""
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
