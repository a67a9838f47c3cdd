"""Errors for the user: each has a one-line message with the remedy, and an exit status.

EsperError
├── UsageError        2   the request cannot be carried out: flag, key, name, device, file
│   ├── Missing           a decision is missing: margin, outcome
│   └── Unanswered        a question about the user's data
├── WorkerFailed      4   a worker died or reported an error; the end of its log is shown
├── WorkerHung       11   a worker, or the preflight, made no progress in time
├── ConditionNotMet  12   a verdict does not meet --fail-unless
├── DiskFull         75   the disk is full; everything recorded is kept
├── JournalError      5   an experiment directory's journal is damaged
└── Interrupted     130   Ctrl-C or SIGTERM
    └── OutOfTime         a time limit of the command, such as the minutes of a gate
"""

from __future__ import annotations

import errno
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from esper_ab.contracts.failure_cause import Cause

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})  # errno values of an OSError that goes away when space is freed

USER_FAULTS = (Exception, SystemExit)  # to catch from users' code, whose sys.exit() must not end our process


class UserCodeFailed(ValueError):
    """A user's function or script failed, or returned an unusable result. The message needs no traceback."""

    again = False  # whether a retry may succeed; False, because a function would get the same input again
    stops = False  # whether all other runs would fail, too, until the user has mended something
    in_log = False  # whether the log ends with the words of the program, which a traceback would only hide
    cause: Cause | None = None  # of a failed program; None: as `contracts/failure_cause.py` makes it of the exception


class CodeChanged(UserCodeFailed):
    """A user's code is no longer that which was planned, so no further run can be compared with those before."""

    stops = True


class OutOfMemory(RuntimeError):
    """A worker's run does not fit into its GPUs' memory; a retry would not help."""


@dataclass(frozen=True)
class SettingName:
    """A setting that a message names, so that the command line and the Python API can each spell it in their own way.

    If `value` is None, only the key is named. If `assigned` is true, the command line has no flag for the setting, so
    it is spelled as `--set KEY=VALUE`.
    """

    key: str  # of the experiment or of all groups: "n_envs"
    value: object = None
    assigned: bool = False


@dataclass(frozen=True)
class ByDoor:
    """A part of a message that the command line and the Python API word differently, and that is no setting."""

    in_shell: str
    in_python: str


Spelling = Callable[[SettingName | ByDoor], str]
_JOINED_BY_COMMAS = ("looks", "groups")
_NO_FLAGS = {"trainer": "the trainer", "outcome": "--higher or --lower", "outcome_better": "--higher or --lower"}
_FLAGS = {"guardrails": "--guardrail"}  # that differ from the key


def as_flag(setting: SettingName | ByDoor) -> str:
    """Spell a setting for the command line: `--n-envs 2`, `--slots early late`, `--set ppo.minibatches=2`."""
    if isinstance(setting, ByDoor):
        return setting.in_shell
    if setting.assigned:
        return f"--set {setting.key}={setting.value}"
    flag = _NO_FLAGS.get(setting.key) or _FLAGS.get(setting.key) or f"--{setting.key.replace('_', '-')}"
    value = setting.value
    if value is None:
        return flag
    if setting.key == "outcome":
        return f"the outcome {value}"
    if isinstance(value, Mapping):
        value = ",".join(f"{name}={part}" for name, part in value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        separator = "," if setting.key in _JOINED_BY_COMMAS else " "
        value = separator.join(map(str, value))
    if setting.key in ("runs", "guardrails", "columns"):  # a pattern, which has braces, or several words
        value = shlex.quote(str(value))
    return f"{flag} {value}"


class EsperError(Exception):
    """Base class of our errors: `str(error)` is shown to the user, and `exit_code` becomes the exit status."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the message says all that the user needs."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(EsperError):
    """A request that cannot be carried out. The parts of its message are texts, settings and words by door.

    In `str(error)`, settings are spelled as flags; `spelled` takes a different spelling.
    """

    exit_code = 2

    def __init__(self, *parts: str | SettingName | ByDoor) -> None:
        super().__init__(*parts)

    def spelled(self, spelling: Spelling) -> str:
        """Return the message with every setting spelled by `spelling`."""
        return "".join(part if isinstance(part, str) else spelling(part) for part in self.args)

    def __str__(self) -> str:
        return self.spelled(as_flag)


class Missing(UsageError):
    """All decisions that are missing and that only the user can make.

    `missing` has a tuple for each decision: the setting, an explanation, and the flag.
    """

    def __init__(self, missing_settings: Sequence[tuple[SettingName, str, str]]) -> None:
        parts: list[str | SettingName] = []
        for setting, explanation, _ in missing_settings:
            parts += ["; " if parts else "missing: ", setting, f" ({explanation})"]
        super().__init__(*parts)
        self.missing = tuple(missing_settings)


@dataclass(frozen=True)
class OpenQuestion:
    """A question about the user's data that only the user can answer.

    `about` says what was found and what depends on it, without a full stop. Each of the `answers` is a setting.
    """

    about: str
    answers: tuple[SettingName, ...]


class Unanswered(UsageError):
    """All questions about the user's data, in one message. A command on a terminal asks them instead."""

    def __init__(self, source: str, questions: Sequence[OpenQuestion]) -> None:
        parts: list[str | SettingName] = [f"{source}: "]
        for place, question in enumerate(questions):
            if place:
                parts.append("; ")
            parts.append(f"{question.about}: ")
            for number, answer in enumerate(question.answers):
                if number:
                    parts.append(" or ")
                parts.append(answer)
        super().__init__(*parts)
        self.source = source
        self.questions = tuple(questions)


class WorkerFailed(EsperError):
    """A worker died or reported an error."""

    exit_code = 4


class JournalError(EsperError):
    """A journal is damaged before its last line, was changed by others, has another version, or cannot be written."""

    exit_code = 5


class DiskFull(EsperError):
    """The disk is full or a quota is exhausted; everything recorded so far is kept."""

    exit_code = 75


@contextmanager
def naming(command: str, *, replaced_command: str) -> Iterator[None]:
    """Inside this context, replace the command `replaced_command` in errors with `command`, which the user called."""
    try:
        yield
    except EsperError as error:
        error.args = tuple(
            part.replace(replaced_command, command) if isinstance(part, str) else part for part in error.args
        )
        raise


def no_room(error: OSError) -> DiskFull:
    """Return the error for a full disk when a file other than a journal was written."""
    place_words = f" for {error.filename}" if error.filename else ""
    return DiskFull(
        f"no space left on the disk{place_words}; journals are not affected; free some, then repeat the command"
    )


def refused(error: OSError, *parts: str | SettingName) -> EsperError:
    """Return the error for a user's file that was refused by the system: DiskFull, or UsageError(*parts)."""
    return no_room(error) if error.errno in NO_ROOM else UsageError(*parts)


class WorkerHung(EsperError):
    """A worker made no progress within its deadline."""

    exit_code = 11


class ConditionNotMet(EsperError):
    """The verdict does not meet --fail-unless."""

    exit_code = 12


class Interrupted(EsperError):
    """The user stopped the experiment. If `in_order` is true, the current barrier was finished first."""

    exit_code = 130

    def __init__(self, message: str, *, in_order: bool = False) -> None:
        super().__init__(message)
        self.in_order = in_order


class OutOfTime(Interrupted):
    """A time limit ended the experiment; nobody stopped it."""
