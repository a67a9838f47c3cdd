"""A word on stderr while something takes long: for terminals only, and gone afterwards."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from support import children

from esper_ab.live.console import waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "term", "shown"), [
    (Terminal, "xterm", "looking …\r\x1b[K"), (Terminal, "dumb", ""), (io.StringIO, "xterm", ""),
])  # fmt: skip
def test_it_is_there_and_gone_where_that_can_be(monkeypatch, stream, term, shown):
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stderr", stream())
    with pytest.raises(RuntimeError), waiting("looking"):
        raise RuntimeError
    assert sys.stderr.getvalue() == shown


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_written_is_there_at_once(tmp_path, unbuffered):
    """As warnings of a run are: with PYTHONUNBUFFERED, which images for containers set, as well as without."""
    program = (
        "import os, pathlib, sys\nfrom esper_ab.live.console import outlive_terminal\n"
        "outlive_terminal(pathlib.Path(sys.argv[1]))\nsys.stderr.write('warning: no room\\n')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False,
        env=children.environment(PYTHONUNBUFFERED=unbuffered),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (-9, "warning: no room\n")
