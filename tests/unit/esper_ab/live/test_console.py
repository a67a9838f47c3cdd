"""A waiting message on terminals, and output after the terminal has hung up."""

import io
import os
import pty
import subprocess
import sys

import pytest
from support.processes import children

from esper_ab.live.console import CONSOLE_NAME, waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "term", "expected"),
    [
        (Terminal, "xterm", "looking …\r\x1b[K"),
        (Terminal, "dumb", ""),
        (io.StringIO, "xterm", ""),
    ],
)
def test_waiting_messages_are_shown_only_on_capable_terminals(monkeypatch, stream, term, expected):
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stderr", stream())
    with pytest.raises(RuntimeError), waiting("looking"):
        raise RuntimeError
    assert sys.stderr.getvalue() == expected


@pytest.mark.parametrize("unbuffered_flag", ["", "1"])
def test_stderr_of_a_killed_process_is_complete(tmp_path, unbuffered_flag):
    """With PYTHONUNBUFFERED, which container images set, and without."""
    program = (
        "import os, pathlib, sys\nfrom esper_ab.live.console import outlive_terminal\n"
        "outlive_terminal(pathlib.Path(sys.argv[1]))\nsys.stderr.write('warning: no room\\n')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    process = children.python("-c", program, tmp_path, PYTHONUNBUFFERED=unbuffered_flag)
    assert (process.returncode, process.stderr) == (-9, "warning: no room\n")


REDRAWS_ON_A_FULL_TERMINAL = r"""
import os, pathlib, signal, sys
from contextlib import suppress
from esper_ab.live.console import outlive_terminal

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a suite under nohup has its children ignore it
outlive_terminal(pathlib.Path(sys.argv[1]))
os.set_blocking(1, False)
with suppress(BlockingIOError):
    while True:
        os.write(1, b"x")
os.set_blocking(1, True)
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGHUP))
signal.setitimer(signal.ITIMER_REAL, 0.2)
print("\x1b[2K\x1b[1Athe table", flush=True)
print("a line", flush=True)
"""


def test_a_terminal_that_hangs_up_during_a_redraw_leaves_no_escapes_in_the_log(tmp_path):
    """Python retries a write that a signal interrupted; meanwhile the file has replaced the terminal."""
    master, slave = pty.openpty()
    program = [sys.executable, "-c", REDRAWS_ON_A_FULL_TERMINAL, str(tmp_path)]
    process = subprocess.Popen(program, stdin=slave, stdout=slave, stderr=subprocess.PIPE, env=children.environment())
    os.close(slave)
    with process:
        while not (tmp_path / CONSOLE_NAME).exists():
            assert process.poll() is None, process.stderr.read()
        os.close(master)
    assert process.returncode == 0
    console = (tmp_path / CONSOLE_NAME).read_text()
    assert console.partition("continues here\n")[2] == "the table\na line\n"
