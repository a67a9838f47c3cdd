"""Errors for the person at the terminal: one line with the remedy, and an exit code.

    EsperError
    ├── UsageError        2   what was asked cannot be done: flag, key, name, device, file
    ├── WorkerFailed      4   a worker died or reported an error; its log's end is shown
    ├── WorkerHung       11   a worker made no progress in time
    ├── ConditionNotMet  12   a verdict is not what --fail-unless asks for
    ├── DiskFull         75   there is no room on the disk; nothing recorded is lost
    ├── JournalError      5   a run directory's journal is damaged
    └── Interrupted     130   Ctrl-C
"""

from __future__ import annotations

import errno

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})  # of an OSError that goes away when somebody makes room


class EsperError(Exception):
    """Base: `str(error)` is what the user reads; `exit_code` is what the shell gets."""

    exit_code = 1


class UsageError(EsperError):
    """What was asked cannot be done as asked."""

    exit_code = 2


class WorkerFailed(EsperError):
    """A worker died or reported an error."""

    exit_code = 4


class JournalError(EsperError):
    """A journal is damaged before its last line."""

    exit_code = 5


class DiskFull(EsperError):
    """No room on the disk, or none left of a quota; what was recorded before is kept."""

    exit_code = 75


class WorkerHung(EsperError):
    """A worker made no progress within its deadline."""

    exit_code = 11


class ConditionNotMet(EsperError):
    """The verdict is not what --fail-unless asks for."""

    exit_code = 12


class Interrupted(EsperError):
    """Stopped by the user. `in_order`: after the barrier in progress, not in the middle of something."""

    exit_code = 130

    def __init__(self, message: str, *, in_order: bool = False) -> None:
        super().__init__(message)
        self.in_order = in_order
