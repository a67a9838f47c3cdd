"""Text that others chose is shown, and obeyed by no terminal."""

from __future__ import annotations

import re
import shlex
import signal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.evil_text import acts

from esper_ab.contracts.wording import how_ended, name_of_signal, shell_command, visible, visible_line


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


# Commands that a user is told to type work as they stand, whatever the experiment directory is called.


@given(st.lists(st.text()))
@example(["my runs/one", "it's", "$HOME", "a;b", "*"])
def test_a_shell_reads_back_what_was_meant(arguments):
    assert shlex.split(shell_command("logs", *arguments)) == ["esper-ab", "logs", *arguments]


# The end of any process has words, whatever ended it.


@pytest.mark.parametrize("number", range(1, signal.NSIG))
def test_every_signal_has_a_name(number):
    name = name_of_signal(number)
    assert name == f"signal {number}" or signal.Signals[name] == number
    assert how_ended(-number) == f"was killed by {name}"


def test_one_for_real_time_has_its_number():
    assert how_ended(-40) == "was killed by signal 40"
    assert how_ended(-signal.SIGKILL) == "was killed by SIGKILL"
    assert how_ended(3) == "ended with exit status 3"
