"""A user's own trainer: the question to the preflight, the results of the rehearsal, and the orders of a run.

A trainer is a Python file with `train(run)` and `evaluate(run, state)`, a function that is called with a seed and
returns its outcome, or a command with placeholders in braces.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

import msgspec

from esper_ab.contracts.code_state import CodeTree, StateOfCode
from esper_ab.contracts.records import Count, FileBelow, Number, Seconds

TrainerValue = bool | int | float | str
Resumption = Literal["exactly", "resumes", "untried", "anew"]
TRAINER_PREFIX = "trainer:"  # of the name of a task that a trainer trains
SEED = "seed"
OUT = "out"
OUT_FILE = "out_file"
NAME = "name"
RESUME = "resume"
DEVICE = "device"
PORT = "port"
FILLED = (SEED, OUT, OUT_FILE, NAME, RESUME, DEVICE, PORT)  # placeholders that every run fills in itself
IN_THE_FOLDER = (OUT, OUT_FILE)  # those that say where a run's files go
_NAME = r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*"  # "lr", "learning-rate", "algo.lr"
_PLACEHOLDER = re.compile(rf"\{{({_NAME})\}}")
_FUNCTION = re.compile(r"(?:.+\.py|[^\W\d]\w*(?:\.[^\W\d]\w*)*):[^\W\d]\w*")
_LIKE_A_PLACEHOLDER = re.compile(r"\{([^\W\d][\w.-]*)\}")  # any letters, also those that are not ASCII
DEFAULT_OUTCOME = "outcome"  # name of an outcome that the user has not named
NAME_WORDS = "the letters a to z, digits, _, - and ."  # what a placeholder's name may consist of
_FILES = (".json", ".csv", ".jsonl", ".ndjson", ".npz")  # formats that may hold an outcome
Tool = Literal["wandb", "wandb-offline", "tb", "stdout"]
_TOOLS: dict[str, Tool] = {"wandb": "wandb", "wandb-offline": "wandb-offline", "tb": "tb", "stdout": "stdout"}
_FORMS = "NAME, FILE:NAME with a .json, .csv, .jsonl or .npz file below {out}, tb:TAG, stdout:NAME, or wandb:KEY"


class TrainerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of `class Settings` in a trainer's file. Each field has a default and is a bool, a number or a text."""


class _TrainerMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of messages about a trainer."""


class TrainerQuestion(_TrainerMessage, frozen=True, kw_only=True):
    """A trainer that the preflight should load and rehearse."""

    reference: str  # the absolute path of a Python file, or a command
    directory: str  # where a command runs
    outcome: str  # name of a Python trainer's outcome, or source of a command's outcome
    groups: dict[str, dict[str, TrainerValue]]  # settings by group, as requested
    rehearsal: dict[str, TrainerValue]  # settings that shorten the rehearsal and apply only there
    points: int
    evaluations: int  # 0: as many as the trainer returns
    margin: Number  # with which the rehearsal compares the outcomes that it finds
    rng_seed: int
    threads: int
    deterministic: bool
    states: tuple[StateOfCode, ...] = ()  # of the code, one per group; (): the files as they are
    states_in: str = ""  # the folder that stands for the experiment directory, with their files
    tree: CodeTree | None = None  # of the state that this question is about, if there are several
    ends_idle: bool = False  # whether a command that has its result and does nothing is ended, in runs, too
    outcome_summary: str = ""  # how the numbers of a command's source become its outcome (contracts/outcome_summary.py)
    gpus: tuple[str, ...]  # of the first run, as in the requested pool: "cuda:1"; or "cuda": any; (): none
    devices_per_run: int = 1


class StateFacts(_TrainerMessage, frozen=True, kw_only=True):
    """The preflight's findings about a trainer in one state of the code."""

    state: StateOfCode
    root: str  # folder of its files, relative to the state's files
    files: tuple[str, ...]  # relative to `root`, its own file first
    sha256: str  # of all files
    repeats: bool
    found: str  # the outcome of the first run of the rehearsal
    versions: dict[str, str] = {}  # of Python and packages, as far as they are known
    packages_sha256: str = ""  # of the versions of all packages and of Python; "": they are not known


class TrainerFacts(_TrainerMessage, frozen=True, kw_only=True):
    """The preflight's findings about a trainer. `problem` is one line on why the trainer cannot be used, or ""."""

    problem: str = ""
    settings: dict[str, dict[str, TrainerValue]] = {}  # by group: complete and typed
    root: str = ""  # folder of its files
    files: tuple[str, ...] = ()  # relative to `root`, its own file first; for a command, files that it names
    sha256: str = ""  # of all files
    points: Count = 0  # of a function's curve; 0: as asked
    metrics: dict[str, str] = {}  # of a point, except the outcome, by the trainer's name -> the measure's
    evaluations: Count = 1  # outcomes of one evaluation
    repeats: bool = False  # whether the same seed gave the same numbers twice, to the bit
    outcome_repeats: bool = True  # whether the same seed gave the same outcome twice, up to rounding
    resumption: Resumption = "anew"
    evaluates_alike: bool = True  # whether a process that did not train gets the same results, as far as they repeat
    ends_idle: bool = False  # as in the question
    source: str = ""  # of a command's outcome, as it was found in every run of the rehearsal; "": as asked
    found: str = ""  # the outcome of the first run of the rehearsal and where it was, in words
    shortened: str = ""  # settings of the rehearsal only, as text
    interpreter: str = ""  # the Python of a command and its version, if it is not the one that runs esper_ab
    memory_bytes: Count = 0  # peak of a run in the rehearsal, of all its processes; 0 in older plans
    states: dict[str, StateFacts] = {}  # by group, if each has a state of the code
    point_s: Seconds = 0.0  # time of one point in the rehearsal; for a command, of the whole script
    evaluate_s: Seconds = 0.0
    # Groups whose run in the rehearsal failed with one seed and not with another, with the reason; those whose run was
    # ended after a while, without having failed; and those that had none.
    failed_once: dict[str, str] = {}
    ended_early: tuple[str, ...] = ()
    not_started: tuple[str, ...] = ()

    @property
    def code_states(self) -> dict[str, StateOfCode]:
        """The state of the code of each group, if each has one."""
        return {group: facts.state for group, facts in self.states.items()}


class TrainerOrder(_TrainerMessage, frozen=True, kw_only=True):
    """The trainer of one run; its settings are in `RunSpec.settings.trainer`."""

    reference: str
    directory: str
    outcome: str
    outcome_summary: str = ""  # as in the question
    worst: Number | None = None  # replaces a NaN outcome; None: it is not replaced
    folder: str  # of the copy of a Python trainer, relative to the experiment directory; absolute for a command's files
    files: tuple[str, ...]
    sha256: str
    metrics: dict[str, str]  # of a point, by the trainer's name -> the measure's
    tree: CodeTree | None = None  # the state of the code of the run's group; None: the files as they are
    out: FileBelow  # the run's own folder, relative to the experiment directory
    ends_idle: bool = False  # whether a command that has its result and does nothing is ended
    resumes: bool  # whether an interrupted run continues from a saved state; if not, it starts over

    def __post_init__(self) -> None:
        check_reference(self.reference)


@dataclass(frozen=True)
class OutcomeSource:
    """Where a command writes its outcome."""

    path: str  # of a file, relative to {out}; "": the only one that has the key, else the output
    key: str  # key of a JSON file, column of a CSV file, tag of an event file, name in the output, key in wandb.log
    tool: Literal[""] | Tool = ""  # what the key is for, unless it is for a file


def is_command(reference: str) -> bool:
    """Whether a trainer is a command rather than the path of a Python file, or a function."""
    return bool(placeholders(reference)) or not (reference.endswith(".py") or is_function(reference))


def is_function(reference: str) -> bool:
    """Whether a trainer is a function that returns its outcome: "train.py:train", "package.module:train"."""
    return _FUNCTION.fullmatch(reference) is not None and not placeholders(reference)


def is_guarded(reference: str) -> bool:
    """Whether each run has a process of its own, so that the worker only guards it and needs no torch."""
    return is_command(reference) or is_function(reference)


def or_script(path: str) -> str:
    """Return the part of a message on a refused Python file that says how a script is written instead."""
    return f'if it is a script, write "python {shlex.quote(path)} --seed {{seed}} … --out {{out}}"'


def check_reference(reference: str) -> None:
    """Raise ValueError if a trainer is a command without words, or one with an unclosed quote."""
    if is_command(reference) and not shlex.split(reference):
        raise ValueError(f"the trainer {reference!r} is an empty command")


def called(reference: str) -> str:
    """Return a trainer's name for users: its file or, for a command, its script, its module, else its program."""
    words = shlex.split(reference) if is_command(reference) else [reference]
    if is_function(reference):
        return PurePath(reference).name
    script = next((word for word in words if word.endswith((".py", ".sh"))), "")
    if script:
        return PurePath(script).name
    return _module(words) or PurePath(words[0]).name


def _module(words: Sequence[str]) -> str:
    """Return MODULE of a command with `python -m MODULE`; "" if it has none."""
    for index, word in enumerate(words[:-2]):
        if PurePath(word).name.startswith("python") and words[index + 1] == "-m":
            return words[index + 2]
    return ""


def read_source(text: str) -> OutcomeSource:
    """Parse the source of a command's outcome; for invalid text, raises a ValueError that lists the valid forms."""
    head, colon, key = text.partition(":")
    tool = _TOOLS.get(head)
    if key and tool:
        if head == "stdout":
            _check_pattern(key)
        return OutcomeSource("", key, tool)
    if not colon and text:
        return OutcomeSource("", text)
    if key and holds_outcome(head) and not head.startswith("/") and ".." not in head.split("/"):
        return OutcomeSource(head, key)
    raise ValueError(f"expected {_FORMS}, not {text!r}")


def _check_pattern(pattern: str) -> None:
    """Raise ValueError for a pattern of output that is not a regular expression with a group."""
    try:
        groups = re.compile(pattern).groups if "(" in pattern else 1
    except re.error as error:
        raise ValueError(f"stdout:{pattern} is not a pattern: {error}") from None
    if not groups:
        raise ValueError(f"stdout:{pattern} has no group in brackets, which would be the number")


def holds_outcome(name: str) -> bool:
    """Whether a file of this name may hold an outcome."""
    return name.endswith(_FILES)


def placeholders(command: str) -> tuple[str, ...]:
    """Return the names in braces, each once, in the order of their first occurrence."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(command)))


def names_placeholder(name: str) -> bool:
    """Whether a placeholder may have this name."""
    return re.fullmatch(_NAME, name) is not None


def misnamed(command: str) -> tuple[str, ...]:
    """Return the words in braces that look like placeholders but have letters that a placeholder cannot have."""
    return tuple(name for name in _LIKE_A_PLACEHOLDER.findall(command) if not names_placeholder(name))


def fill(command: str, values: Mapping[str, TrainerValue]) -> list[str]:
    """Return the words of a command with its placeholders filled in. No shell is used, so a value stays one word."""
    return [fill_word(word, values) for word in shlex.split(command)]


def fill_word(word: str, values: Mapping[str, TrainerValue]) -> str:
    """Return a word of a command with its placeholders filled in."""

    def fill_in(placeholder: re.Match[str]) -> str:
        value = values[placeholder[1]]
        return str(value).lower() if isinstance(value, bool) else str(value)

    return _PLACEHOLDER.sub(fill_in, word)
