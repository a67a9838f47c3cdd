"""Command lines suggested to a user, quoted so that a shell reads them back unchanged."""

import shlex

from hypothesis import example, given
from hypothesis import strategies as st

from esper_ab.contracts.shell_command import shell_command


@given(st.lists(st.text()))
@example(["my runs/one", "it's", "$HOME", "a;b", "*"])
def test_a_shell_reads_back_the_quoted_arguments(arguments):
    assert shlex.split(shell_command("logs", *arguments)) == ["esper-ab", "logs", *arguments]
