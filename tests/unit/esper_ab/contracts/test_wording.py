import json
import re
import shlex
import signal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.evil_text import acts

from esper_ab.contracts.wording import (
    counted,
    did_you_mean,
    how_ended,
    n_pairs,
    name_of_signal,
    named,
    shell_command,
    significant,
    visible,
    visible_json,
    visible_line,
)

MANY = tuple(f"g{number}" for number in range(40))


def test_one_is_singular_and_all_other_counts_are_plural():
    assert [counted(count, "run") for count in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    assert n_pairs(1) == "1 pair"


@given(st.floats(1e-9, 1e9), st.integers(1, 4))
def test_sizes_are_written_without_a_power_of_ten(value, digits):
    text = significant(value, digits)
    assert "e" not in text
    assert abs(Fraction(text) / Fraction(value) - 1) <= Fraction(51, 100 * 10 ** (digits - 1))


def test_pairs_are_named_by_what_they_have_in_common():
    assert named([("a", "b")]) == "a and b"
    assert named([("a", "b"), ("a", "c"), ("b", "c")]) == "any two of a, b, c"
    assert named([("b", "a"), ("c", "a")]) == "a and each of b, c"
    assert named([("a", "b"), ("c", "d")]) == "a and b, c and d"


def test_what_is_close_is_proposed_and_else_all_is_listed() -> None:
    assert did_you_mean("shapd", ("shaped", "sparse")) == "did you mean shaped?"
    assert did_you_mean("x", MANY) == f"known: {', '.join(MANY)}"
    assert did_you_mean("x", ()) == "known: none"


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


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_json_for_a_terminal_is_printable_and_means_the_same(key, value):
    tree = {key: [value, "\N{RIGHT-TO-LEFT OVERRIDE}\x9b\x7f\u2028é日\U000e0001"]}
    shown = visible_json(json.dumps(tree, ensure_ascii=False, indent=2).encode())
    assert shown.replace("\n", "").isprintable()
    assert "é日" in shown
    assert json.loads(shown) == tree
