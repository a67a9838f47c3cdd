"""Escaping of untrusted text (a log, a message, a name in a journal) for a terminal."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from support.files.hostile_text import acts

from esper_ab.contracts.visible import visible, visible_json, visible_line


@given(st.text())
def test_visible_text_has_no_control_sequences(text):
    assert not acts(visible(text))
    assert not set(visible_line(text)) & set("\n\t\r")
    if not acts(text) and text.isascii():
        assert visible(text) == text
    assert len(visible_line(text, 10)) <= 11


def test_control_characters_are_replaced_by_their_escapes():
    assert visible("a\x1b[31mb\x9b\u202e\ud800") == r"a\x1b[31mb\x9b\u202e\ud800"
    assert visible_line("a\n\tb") == r"a\n\tb"
    assert re.fullmatch(r"x{9}\\…", visible_line("x" * 9 + "\n" * 20, 10))


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_visible_json_has_the_same_value(key, value):
    tree = {key: [value, "\N{RIGHT-TO-LEFT OVERRIDE}\x9b\x7f\u2028é日\U000e0001"]}
    text = visible_json(json.dumps(tree, ensure_ascii=False, indent=2).encode())
    assert text.replace("\n", "").isprintable()
    assert "é日" in text
    assert json.loads(text) == tree
