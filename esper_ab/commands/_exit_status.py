"""What stands around every command: its exit status, its errors as one line, and the end of its help.

click's own handling would make Ctrl-C a 1 and print other words. The exit statuses:

    0 done    1 internal error    2 what was asked cannot be done    4 a worker failed    5 journal damaged
    11 a worker hung    12 a condition of --fail-unless does not hold    75 disk full    130 interrupted
"""

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
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

import click

from esper_ab.contracts.errors import (
    NO_ROOM,
    ConditionNotMet,
    DiskFull,
    EsperError,
    Interrupted,
    Setting,
    UsageError,
    as_flag,
    no_room,
)
from esper_ab.contracts.wording import visible

# --- unknown option --------------------------------------------------------------------------------------------------
# "Did you mean" for an unknown option, by its meaning or by its letters.


def unknown_option(error: click.NoSuchOption) -> str:
    """Write the sentence: options of the same meaning in other tools first, then those spelt alike, closest first."""
    from esper_ab.settings.assignments import OURS  # for an option that does not exist alone: others do not wait

    said = f"no option {error.option_name}"
    known = [flag for parameter in error.ctx.command.params for flag in parameter.opts] if error.ctx else []
    same = [
        as_flag(Setting(key, "...", assigned=True) if "." in key else Setting(key))
        for key in OURS.get(error.option_name.lstrip("-").replace("-", "_"), ())
    ]
    if same and {flag.split()[0] for flag in same} <= set(known):
        return f"{said}; here that is {' and '.join(same)}"
    close = get_close_matches(error.option_name, known, n=2)
    return f"{said}; did you mean {' or '.join(close)}?" if close else said


_EXAMPLE_WIDTH = 76  # of 80 columns: click indents by two, and two are for what continues a line
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))  # by descriptor: name in sys, mode
_NO_THREAD = "can't start new thread"  # what Python says, as a RuntimeError
# What a system says no with, to a file that the user chose.
_REFUSED = frozenset({
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP,
    errno.ENAMETOOLONG, errno.EINVAL, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE, errno.EFBIG,
})
STATUSES = (
    "Exit status: 0 done, 1 internal error, 2 what was asked cannot be done, 4 a worker failed, 5 a journal is "
    "damaged, 11 a worker hung, 12 a condition of --fail-unless does not hold, 75 the disk is full, 130 interrupted."
)


def epilog(*lines: str, statuses: str = "Exit statuses: esper-ab --help.") -> str:
    """The epilog of a click command: example command lines, then the exit statuses. Tests run them."""
    shown = "\n".join(_folded(line) for line in lines)
    return f"\b\nExamples:\n{shown}\n\n{statuses}"


def command_with(*examples: str, **how: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Decorator of a click command whose help ends in `examples`."""
    return click.command(epilog=epilog(*examples), **how)


def _folded(line: str) -> str:
    """An example within 80 columns, continued as a shell takes it; what is quoted, and a flag's value, stay with it."""
    rows = ["  "]
    for word in re.findall(r"(?:--[\w-]+ (?!-))?(?:'[^']*'|\"[^\"]*\"|\S)+", line):
        if rows[-1].strip() and len(rows[-1]) + len(word) + 1 > _EXAMPLE_WIDTH:
            rows[-1] += "\\"
            rows.append("      ")
        rows[-1] += f"{word} "
    return "\n".join(row.rstrip() for row in rows)


def _report(message: str, status: int, args: Sequence[str]) -> int:
    click.echo(f"error: {visible(message)}", err=True)
    if "--json" in args or "--format=json" in args or ("--format", "json") in pairwise(args):
        click.echo(json.dumps({"error": message, "exit_status": status}))
    return status


def _of_the_system(error: OSError, args: Sequence[str]) -> int:
    """An error of the system in one line; anything else that has its type is raised again, as a mistake of ours."""
    if error.errno in NO_ROOM:
        return _report(str(no_room(error)), DiskFull.exit_code, args)  # a journal's writer raises DiskFull
    if error.errno == errno.EAGAIN and error.filename is None:  # of fork
        return _report(_out_of_processes(error), UsageError.exit_code, args)
    if error.filename is None or error.errno not in _REFUSED:
        raise error
    return _report(f"{error.filename}: {error.strerror}", UsageError.exit_code, args)


def _open_standard_streams() -> None:
    """Give streams that were closed a place: else the next file that is opened becomes stdout or stderr for libraries.

    And Python has None in their place, which nobody can write to or ask whether it is a terminal. What is shown can be
    written in any encoding.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < len(_STREAMS):
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.dup(number), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # what its encoding does not have appears as its escape


def _lacking(error: Exception) -> str:
    """What Python says where memory or a thread is lacking; any other RuntimeError is raised again, as a mistake."""
    if isinstance(error, MemoryError):
        what = f" ({said})" if (said := " ".join(str(error).split())) else ""
        return f"out of memory{what}; free some, or ask for less at once, as with --max-parallel; no journal is harmed"
    if str(error) != _NO_THREAD:
        raise error
    return _out_of_processes(error)


def _out_of_processes(error: BaseException) -> str:
    remedy = "end something, or raise `ulimit -u` or the control group's pids.max"
    return f"no process or thread could be added ({error}): {remedy}; no journal is harmed"


def leaving(status: int) -> int:
    """End this process with `status` before Python takes its libraries apart, which takes up to a second.

    Return `status`, for sys.exit, where more is left to do: code of the user's that may hold open files, output that
    cannot be written. A thread that was given up computes in a library, which may not be taken apart at all.
    """
    inline = sys.modules.get("esper_ab.launchers.inline")
    if inline is None or not inline.any_given_up():  # by now the journal is closed
        if inline is not None or "esper_ab.api.files" in sys.modules:
            return status
        atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)
    return status


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """While entered, SIGTERM is the interruption that Ctrl-C is, also where no coordinator catches it."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@_terminated_as_interrupted()
def invoke(command: click.Command, args: Sequence[str], program: str) -> int:
    """Run `command`; its errors become one line on stderr (and an object on stdout with --json) and a status."""
    _open_standard_streams()
    try:
        status = command.main(args=list(args), prog_name=program, standalone_mode=False)
    except ConditionNotMet as error:
        return _report(str(error), error.exit_code, ())  # stdout has the verdict already
    except EsperError as error:
        return _report(str(error), error.exit_code, args)
    except OSError as error:
        return _of_the_system(error, args)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return UsageError.exit_code
    except click.ClickException as error:
        refused = getattr(error, "ctx", None)
        path = refused.command_path if refused is not None else program  # as in "esper-ab launch"
        said = unknown_option(error) if isinstance(error, click.NoSuchOption) else error.format_message()
        hint = f" (see `{path} --help`)" if isinstance(error, click.UsageError) else ""
        return _report(" ".join(said.split()) + hint, UsageError.exit_code, args)
    except (KeyboardInterrupt, click.Abort):
        return _report("interrupted", Interrupted.exit_code, args)
    except (MemoryError, RuntimeError) as error:
        return _report(_lacking(error), UsageError.exit_code, args)
    return status if isinstance(status, int) else 0
