"""Escaping of untrusted text (a log, a message, a name in a journal) for a terminal."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from support.files.hostile_text import acts

from esper_ab.contracts.visible import visible, visible_json, visible_line

# Text that others chose is shown, and obeyed by no terminal.


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


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_json_for_a_terminal_is_printable_and_means_the_same(key, value):
    tree = {key: [value, "\N{RIGHT-TO-LEFT OVERRIDE}\x9b\x7f\u2028é日\U000e0001"]}
    shown = visible_json(json.dumps(tree, ensure_ascii=False, indent=2).encode())
    assert shown.replace("\n", "").isprintable()
    assert "é日" in shown
    assert json.loads(shown) == tree
