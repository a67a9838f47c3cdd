"""Ctrl-C during a call: what a script can catch, what Python shows if it does not, and the exit status."""

import signal
import sys

import pytest
from support.processes.children import python

from esper_ab.api.interrupting import interruptible
from esper_ab.contracts.errors import Interrupted

SCRIPT = """
import signal
from esper_ab.api.interrupting import interruptible
from esper_ab.contracts.errors import Interrupted

def inner():
    with interruptible("interrupted before the first run"):
        {statement}

{call}
"""


@pytest.fixture(autouse=True)
def hook(monkeypatch):
    """Restore the hook for uncaught exceptions after each test."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyboardInterrupt(), "interrupted before the first run"),
        (Interrupted("stopped\nto go on: esper-ab resume x"), "stopped; to go on: esper-ab resume x"),
    ],
)
def test_ctrl_c_raises_a_keyboard_interrupt_with_one_line(error, line):
    with pytest.raises(KeyboardInterrupt) as caught, interruptible("interrupted before the first run"):
        raise error
    assert type(caught.value) is KeyboardInterrupt, "which `except Exception` does not catch"
    assert str(caught.value) == line
    assert caught.value._render_traceback_() == [f"KeyboardInterrupt: {line}"], "as IPython shows it"


@pytest.mark.parametrize("statement", ["signal.raise_signal(signal.SIGINT)", "raise Interrupted('stopped')"])
def test_a_script_that_does_not_catch_ctrl_c_shows_one_line_and_ends_as_python_does(statement):
    ended = python("-c", SCRIPT.format(statement=statement, call="inner()"))
    expected = "stopped" if "Interrupted" in statement else "interrupted before the first run"
    assert ended.stderr == f"{expected}\n"
    assert ended.returncode == -signal.SIGINT, "a shell calls it 130"


def test_other_exceptions_are_shown_as_before():
    call = "try:\n    inner()\nexcept KeyboardInterrupt:\n    1 / 0"
    ended = python("-c", SCRIPT.format(statement="raise KeyboardInterrupt", call=call))
    assert "Traceback" in ended.stderr
    assert "ZeroDivisionError" in ended.stderr
    assert ended.returncode == 1
