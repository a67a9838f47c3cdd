"""Errors for the person at the terminal: one line with the remedy, and an exit code.

    EsperError
    ├── UsageError        2   the request cannot be carried out: flag, key, name, device, file
    ├── WorkerFailed      4   a worker died or reported an error; the end of its log is shown
    ├── WorkerHung       11   a worker, or the preflight, made no progress in time
    ├── ConditionNotMet  12   a verdict does not meet --fail-unless
    ├── DiskFull         75   the disk is full; everything recorded is kept
    ├── JournalError      5   an experiment directory's journal is damaged
    └── Interrupted     130   Ctrl-C or SIGTERM
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})  # errno values of an OSError that goes away when space is freed

USER_FAULTS = (Exception, SystemExit)  # errors of users' code to catch; its sys.exit() must not end our process


class UserCodeFailed(ValueError):
    """A user's function or script failed or returned an unusable result; the message is complete without a traceback.
    """

    again = False  # whether a retry may succeed: a function would get the same input again


class OutOfMemory(RuntimeError):
    """A worker's run does not fit into its GPUs' memory; a retry would not help."""


@dataclass(frozen=True)
class Setting:
    """A setting that a message names, so that each front end can spell it in its own way.

    `value`: None names the key alone. `assigned`: the command line has no flag for it, only `--set KEY=VALUE`.
    """

    key: str  # of the experiment or of all groups: "n_envs"
    value: object = None
    assigned: bool = False


Spelling = Callable[[Setting], str]
_NO_FLAGS = {"trainer": "the trainer", "outcome": "--higher or --lower", "outcome_better": "--higher or --lower"}


def as_flag(setting: Setting) -> str:
    """Spell a setting for the command line: `--n-envs 2`, `--slots early late`, `--set ppo.minibatches=2`."""
    if setting.assigned:
        return f"--set {setting.key}={setting.value}"
    flag, value = _NO_FLAGS.get(setting.key) or f"--{setting.key.replace('_', '-')}", setting.value
    if value is None:
        return flag
    if setting.key == "outcome":
        return f"the outcome {value}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = ("," if setting.key == "looks" else " ").join(map(str, value))
    return f"{flag} {value}"


class EsperError(Exception):
    """Base class of our errors: `str(error)` is shown to the user, and `exit_code` is returned to the shell."""

    exit_code = 1


class UsageError(EsperError):
    """A request that cannot be carried out. Its parts are text, and settings that the text names.

    `str(error)` spells settings as flags, `spelled` in any other way.
    """

    exit_code = 2

    def __init__(self, *parts: str | Setting) -> None:
        super().__init__(*parts)

    def spelled(self, spelling: Spelling) -> str:
        """Return the message with every setting spelled by `spelling`."""
        return "".join(spelling(part) if isinstance(part, Setting) else part for part in self.args)

    def __str__(self) -> str:
        return self.spelled(as_flag)


class Missing(UsageError):
    """All missing decisions that only the user can make.

    `missing`: for each, its setting, what it decides, and its flag.
    """

    def __init__(self, missing: Sequence[tuple[Setting, str, str]]) -> None:
        words = [part for setting, decides, _ in missing for part in ("; ", setting, f" ({decides})")]
        super().__init__("missing: ", *words[1:])
        self.missing = tuple(missing)


class WorkerFailed(EsperError):
    """A worker died or reported an error."""

    exit_code = 4


class JournalError(EsperError):
    """A journal is damaged before its last line, changed by others, of another version, or cannot be written."""

    exit_code = 5


class DiskFull(EsperError):
    """No room on the disk, or a quota is exhausted; everything recorded before is kept."""

    exit_code = 75


@contextmanager
def naming(command: str, *, instead_of: str) -> Iterator[None]:
    """Inside this context, replace the command `instead_of` in errors by `command`, which the user actually called."""
    try:
        yield
    except EsperError as error:
        error.args = tuple(one.replace(instead_of, command) if isinstance(one, str) else one for one in error.args)
        raise


def no_room(error: OSError) -> DiskFull:
    """Return the error for a full disk, for a file outside of journals."""
    where = f" for {error.filename}" if error.filename else ""
    return DiskFull(f"no space left on the disk{where}; journals are not affected: free some and repeat the command")


def refused(error: OSError, *parts: str | Setting) -> EsperError:
    """Return the error for a file, chosen by the user, that the system refused: DiskFull, or UsageError of `parts`."""
    return no_room(error) if error.errno in NO_ROOM else UsageError(*parts)


class WorkerHung(EsperError):
    """A worker made no progress within its deadline."""

    exit_code = 11


class ConditionNotMet(EsperError):
    """The verdict does not meet --fail-unless."""

    exit_code = 12


class Interrupted(EsperError):
    """Stopped by the user. `in_order`: after the current barrier, not in the middle of something."""

    exit_code = 130

    def __init__(self, message: str, *, in_order: bool = False) -> None:
        super().__init__(message)
        self.in_order = in_order
