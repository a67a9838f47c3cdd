"""A word on stderr while something takes long: for terminals only, and gone afterwards."""

from __future__ import annotations

import io
import sys

import pytest

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
