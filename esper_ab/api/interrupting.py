"""Ctrl-C while a function of the Python API works: KeyboardInterrupt, of which Python shows one line.

Python shows the frames of an exception that no script catches; here they are all ours. Its exit status after a
KeyboardInterrupt that is not caught is kept: 130 in a shell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import click

from esper_ab.contracts.errors import Interrupted
from esper_ab.contracts.shell_command import typeable

_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]
_RENDER = "_render_traceback_"  # IPython calls this method of an exception in place of printing its frames


@contextmanager
def interruptible(message: str) -> Iterator[None]:
    """Inside this context, Ctrl-C and SIGTERM raise KeyboardInterrupt, with one line.

    `message`: the line, if the coordinator was not at work; after a barrier, it says more itself.
    """
    try:
        yield
    except Interrupted as error:
        raise _quiet_interrupt("; ".join(str(error).splitlines())) from None
    except KeyboardInterrupt:
        raise _quiet_interrupt(message) from None


def _quiet_interrupt(message: str) -> KeyboardInterrupt:
    """Return an exception which Python and IPython show without frames."""
    interrupt = KeyboardInterrupt(message)  # not a subclass, for which Python would exit with status 1
    vars(interrupt)[_RENDER] = lambda: [f"KeyboardInterrupt: {message}"]
    if not isinstance(sys.excepthook, _OneLine):
        sys.excepthook = _OneLine(sys.excepthook)
    return interrupt


class _OneLine:
    """An excepthook that prints our interrupts in one line, and leaves all other exceptions to the previous hook."""

    def __init__(self, previous_hook: _Hook) -> None:
        self._previous_hook = previous_hook

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if _RENDER in vars(error):
            click.echo(typeable(str(error)), err=True)
        else:
            self._previous_hook(kind, error, trace)
