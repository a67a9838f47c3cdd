"""A trainer of the user's own: what is asked about it, what its rehearsal found, and a run's orders.

It is a Python file with `train(run)` and `evaluate(run, state)`, or a command with placeholders in braces.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

import msgspec

from esper_ab.contracts.records import FileBelow

TrainerValue = bool | int | float | str
Resumption = Literal["exactly", "resumes", "anew"]
SEED, OUT = "seed", "out"  # placeholders that every run fills by itself
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_FILES = (".json", ".csv")  # that may hold an outcome
_FORMS = "NAME, FILE:NAME with a .json or .csv file below {out}, or wandb:KEY"


class TrainerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of `class Settings` in a trainer's file: fields with a default, each true or false, a number or text."""


class _Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what is told about a trainer."""


class TrainerQuestion(_Told, frozen=True, kw_only=True):
    """A trainer that the preflight is to load and to rehearse."""

    reference: str  # the absolute path of a Python file, or a command
    directory: str  # where a command runs
    outcome: str  # name of a Python trainer's outcome, or a command's source of it
    groups: dict[str, dict[str, TrainerValue]]  # settings by group, as asked for
    rehearsal: dict[str, TrainerValue]  # settings of the rehearsal alone, which make it shorter
    points: int
    evaluations: int  # 0: as many as the trainer returns
    rng_seed: int
    threads: int
    deterministic: bool
    gpu: str  # the first of the pool, "cuda:1", as far as the pool was named; "cuda": of all that there are; "": none


class TrainerFacts(_Told, frozen=True, kw_only=True):
    """What the preflight found out about a trainer; `problem`: why it cannot be used, one line."""

    problem: str = ""
    settings: dict[str, dict[str, TrainerValue]] = {}  # by group: complete, and of their types
    root: str = ""  # folder of its files
    files: tuple[str, ...] = ()  # below it; its own file first. Of a command: files that it names
    sha256: str = ""  # of all files
    metrics: dict[str, str] = {}  # of a point without the outcome, by the trainer's name -> the measure's
    evaluations: int = 1  # outcomes of one evaluation
    repeats: bool = False  # the same seed twice gave the same numbers to the bit
    resumption: Resumption = "anew"
    evaluates_alike: bool = True  # also in a process that has not trained, as far as it repeats
    shortened: str = ""  # settings of the rehearsal alone, as text
    point_s: float = 0.0  # of one point in the rehearsal; the whole script for a command
    evaluate_s: float = 0.0


class TrainerOrder(_Told, frozen=True, kw_only=True):
    """The trainer of one run; its settings are in `RunSpec.settings.trainer`."""

    reference: str
    directory: str
    outcome: str
    worst: float | None = None  # what stands for an outcome that is no number; None: nothing does
    folder: str  # of the copy of a Python trainer, relative to the experiment directory; of a command's files: absolute
    files: tuple[str, ...]
    sha256: str
    metrics: dict[str, str]  # of a point, by the trainer's name -> the measure's
    out: FileBelow  # the run's own folder, relative to the experiment directory
    resumes: bool  # from a state; else it begins anew


@dataclass(frozen=True)
class OutcomeSource:
    """Where a command leaves its outcome."""

    path: str  # of a .json or .csv file, relative to {out}; "": of the only one there is
    key: str  # of a JSON file; column of a CSV file; what wandb.log is given
    wandb: bool = False


def is_command(reference: str) -> bool:
    """Whether a trainer is a command; else it is the path of a Python file."""
    return not reference.endswith(".py") or bool(placeholders(reference))


def called(reference: str) -> str:
    """Return what people call a trainer: its file, or the first Python file or else the program of a command."""
    words = shlex.split(reference) if is_command(reference) else [reference]
    return PurePath(next((word for word in words if word.endswith(".py")), words[0])).name


def read_source(text: str) -> OutcomeSource:
    """Read where a command leaves its outcome; ValueError with the forms for anything else."""
    head, colon, key = text.partition(":")
    if colon and head == "wandb" and key:
        return OutcomeSource("", key, wandb=True)
    if not colon and text:
        return OutcomeSource("", text)
    if key and holds_outcome(head) and not head.startswith("/") and ".." not in head.split("/"):
        return OutcomeSource(head, key)
    raise ValueError(f"expected {_FORMS}, not {text!r}")


def holds_outcome(name: str) -> bool:
    """Whether a file of this name may hold an outcome."""
    return name.endswith(_FILES)


def placeholders(command: str) -> tuple[str, ...]:
    """Return the names between braces, each once, in order."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(command)))


def fill(command: str, values: Mapping[str, TrainerValue]) -> list[str]:
    """Return the words of a command; a value stays one word whatever it holds, for no shell reads it."""

    def text(found: re.Match[str]) -> str:
        value = values[found[1]]
        return str(value).lower() if isinstance(value, bool) else str(value)

    return [_PLACEHOLDER.sub(text, word) for word in shlex.split(command)]
