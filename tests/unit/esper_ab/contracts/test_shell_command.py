"""Command lines suggested to a user, quoted so that a shell reads them back unchanged."""

import shlex

from hypothesis import example, given
from hypothesis import strategies as st

from esper_ab.contracts.shell_command import shell_command

# Commands that a user is told to type work as they stand, whatever the experiment directory is called.


@given(st.lists(st.text()))
@example(["my runs/one", "it's", "$HOME", "a;b", "*"])
def test_a_shell_reads_back_what_was_meant(arguments):
    assert shlex.split(shell_command("logs", *arguments)) == ["esper-ab", "logs", *arguments]
