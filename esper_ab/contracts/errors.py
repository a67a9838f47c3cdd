"""Errors for the person at the terminal: one line with the remedy, and an exit code.

    EsperError
    ├── UsageError        2   the request cannot be carried out: flag, key, name, device, file
    ├── WorkerFailed      4   a worker died or reported an error; the end of its log is shown
    ├── WorkerHung       11   a worker made no progress in time
    ├── ConditionNotMet  12   a verdict does not meet --fail-unless
    ├── DiskFull         75   there is no room on the disk; nothing recorded is lost
    ├── JournalError      5   a run directory's journal is damaged
    └── Interrupted     130   Ctrl-C
"""

from __future__ import annotations

import errno

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})  # errno values of an OSError that goes away when space is freed


class EsperError(Exception):
    """Base class: `str(error)` is shown to the user; `exit_code` is returned to the shell."""

    exit_code = 1


class UsageError(EsperError):
    """The request cannot be carried out as given."""

    exit_code = 2


class WorkerFailed(EsperError):
    """A worker died or reported an error."""

    exit_code = 4


class JournalError(EsperError):
    """A journal is damaged before its last line."""

    exit_code = 5


class DiskFull(EsperError):
    """No room on the disk, or a quota is exhausted; everything recorded before is kept."""

    exit_code = 75


class WorkerHung(EsperError):
    """A worker made no progress within its deadline."""

    exit_code = 11


class ConditionNotMet(EsperError):
    """The verdict does not meet --fail-unless."""

    exit_code = 12


class Interrupted(EsperError):
    """Stopped by the user."""

    exit_code = 130
