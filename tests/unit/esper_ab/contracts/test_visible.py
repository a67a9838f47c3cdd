"""Text that others chose is shown, and obeyed by no terminal."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from support.evil_text import acts

from esper_ab.contracts.visible import visible, visible_line


@given(st.text())
def test_visible_text_obeys_nothing_and_keeps_what_is_plain(text):
    assert not acts(visible(text))
    assert not set(visible_line(text)) & set("\n\t\r")
    if not acts(text) and text.isascii():
        assert visible(text) == text
    assert len(visible_line(text, 10)) <= 11


def test_escapes_say_what_was_there():
    assert visible("a\x1b[31mb\x9b\u202e\ud800") == r"a\x1b[31mb\x9b\u202e\ud800"
    assert visible_line("a\n\tb") == r"a\n\tb"
    assert re.fullmatch(r"x{9}\\…", visible_line("x" * 9 + "\n" * 20, 10))
