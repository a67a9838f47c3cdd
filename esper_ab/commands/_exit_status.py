"""Exit statuses, one-line errors and the end of the help, shared by all commands."""

from __future__ import annotations

import atexit
import errno
import io
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from esper_ab.commands._parameters import Command
from esper_ab.contracts.errors import (
    NO_ROOM,
    ConditionNotMet,
    DiskFull,
    EsperError,
    Interrupted,
    UsageError,
    no_room,
)
from esper_ab.contracts.process_exit import PROCESS_EXIT
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible

_EXAMPLE_WIDTH = 76  # of 80 columns: click indents by two, and a continuation takes two
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))  # by descriptor: name in sys, mode
COMMANDS_THAT_TRAIN = frozenset(
    {"launch", "esper_ab.launch", "gate", "stream", "resume", "calibrate"}
)  # commands that run experiments
_NO_THREAD = "can't start new thread"  # the text of Python's RuntimeError
# Errors with which the system refuses a file that the user chose.
_REFUSED = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EEXIST,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EINVAL,
        errno.EIO,
        errno.ESTALE,
        errno.EMFILE,
        errno.ENFILE,
        errno.EFBIG,
    }
)
NOTHING_ANSWERED = 3  # by judge or compare: every verdict is NO INFERENCE or BLOCKED
STATUSES = (
    "Exit status: 0 done, 1 internal error, 2 what was asked cannot be done, 3 judge or compare could answer nothing, "
    "4 a worker failed, 5 a journal is damaged, 11 a worker hung, 12 a condition of --fail-unless does not hold, 75 "
    "the disk is full, 130 interrupted."
)


def epilog(*lines: str, statuses: str = "Exit statuses: esper-ab --help.") -> str:
    """Return the epilog of a click command: example command lines, which the tests run, and the exit statuses."""
    examples = "\n".join(_folded(line) for line in lines)
    return f"\b\nExamples:\n{examples}\n\n{statuses}"


def command_with(*examples: str, **parameters: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator for a click command whose help ends with `examples`."""
    return click.command(epilog=epilog(*examples), **{"cls": Command, **parameters})


def _folded(line: str) -> str:
    """Wrap an example at 80 columns with shell continuations; never split a quoted word, or a flag from its value."""
    rows = ["  "]
    for word in re.findall(r"(?:--[\w-]+ (?!-))?(?:'[^']*'|\"[^\"]*\"|\S)+", line):
        if rows[-1].strip() and len(rows[-1]) + len(word) + 1 > _EXAMPLE_WIDTH:
            rows[-1] += "\\"
            rows.append("      ")
        rows[-1] += f"{word} "
    return "\n".join(row.rstrip() for row in rows)


def _report(message: str, status: int, args: Sequence[str]) -> int:
    with suppress(OSError):  # the error may be that of this stream
        click.echo(typeable(f"error: {visible(message)}"), err=True)
    if "--json" in args or "--format=json" in args or ("--format", "json") in pairwise(args):
        with suppress(OSError):
            click.echo(json.dumps({"error": message, "exit_status": status}))
    return status


def _report_system_error(error: OSError, args: Sequence[str]) -> int:
    """Report, in one line, an OSError that the system caused; re-raise any other OSError, because it is a bug."""
    if error.errno in NO_ROOM:
        return _report(str(no_room(error)), DiskFull.exit_code, args)  # a journal's writer raises DiskFull
    if error.errno == errno.EAGAIN and error.filename is None:  # from fork
        return _report(_describe_process_limit(error), UsageError.exit_code, args)
    if error.filename is None and error.errno == errno.ENOENT and not _has_working_directory():
        message = "the working directory was removed; change to one that exists"
        return _report("\n".join([message, *getattr(error, "__notes__", ())]), UsageError.exit_code, args)
    if error.filename is None or error.errno not in _REFUSED:
        raise error
    return _report(f"{error.filename}: {error.strerror}", UsageError.exit_code, args)


def _has_working_directory() -> bool:
    try:
        return Path.cwd().is_dir()
    except FileNotFoundError:
        return False


def _open_standard_streams() -> None:
    """Open /dev/null for closed standard streams; otherwise the next opened file would get the descriptor of stdout.

    Python sets a closed standard stream to None, which has no write() and no isatty(). Also make stdout and stderr
    escape characters that are missing from their encoding.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < len(_STREAMS):
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.dup(number), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _lacking(error: Exception, program: str, args: Sequence[str]) -> str:
    """Describe a shortage of memory or threads; re-raise any other RuntimeError, because it is a bug."""
    if isinstance(error, MemoryError):
        details = " ".join(str(error).split())
        details_words = f" ({details})" if details else ""
        remedy = "free some memory"
        if COMMANDS_THAT_TRAIN & {*program.split()[-1:], *args[:1]}:
            remedy += ", or run fewer runs at the same time, for example with --max-parallel 1"
        return f"out of memory{details_words}; {remedy}; journals are not affected"
    if str(error) != _NO_THREAD:
        raise error
    return _describe_process_limit(error)


def _describe_process_limit(error: BaseException) -> str:
    remedy = "end other processes, or raise `ulimit -u` or the control group's pids.max"
    return f"no process or thread could be started ({error}): {remedy}; journals are not affected"


def leaving(status: int) -> int:
    """Exit with `status` without waiting up to a second for Python to tear down its libraries.

    If user code may hold open files, or the output could not be written, the teardown must run: return `status` for
    sys.exit. If an abandoned thread is still running inside a library, exit without the teardown, because tearing down
    that library could crash the process.
    """
    if not PROCESS_EXIT.teardown_could_crash():  # by now the journal is closed
        if PROCESS_EXIT.needs_teardown:
            return status
        atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)
    return status


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C inside this context, even where no coordinator handles it."""
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@_terminated_as_interrupted()
def invoke(command: click.Command, args: Sequence[str], program: str) -> int:
    """Run `command` and return its exit status.

    An error is printed as one line on stderr and, with --json, also as JSON on stdout.
    """
    _open_standard_streams()
    try:
        status = command.main(args=list(args), prog_name=program, standalone_mode=False)
    except ConditionNotMet as error:
        return _report(str(error), error.exit_code, ())  # stdout already has the verdict
    except EsperError as error:
        return _report(str(error), error.exit_code, args)
    except OSError as error:
        return _report_system_error(error, args)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return UsageError.exit_code
    except click.ClickException as error:
        return _report(_click_message(error, program), UsageError.exit_code, args)
    except (KeyboardInterrupt, click.Abort):
        return _report("interrupted", Interrupted.exit_code, args)
    except (MemoryError, RuntimeError) as error:
        return _report(_lacking(error, program, args), UsageError.exit_code, args)
    return status if isinstance(status, int) else 0


def _click_message(error: click.ClickException, program: str) -> str:
    """Return an error of click in one line; if it is about the command line, the line also names the help."""
    if isinstance(error, click.NoSuchOption):
        from esper_ab.commands._unknown_option import unknown_option  # imported only for this error

        message = unknown_option(error)
    else:
        message = error.format_message()
    line = " ".join(message.split())
    if not isinstance(error, click.UsageError):
        return line
    path = program
    if error.ctx is not None:
        path = error.ctx.command_path  # as in "esper-ab launch"
    return f"{line} (see `{path} --help`)"
