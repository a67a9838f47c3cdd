"""The commands that repeat an experiment."""

import shlex

from support.journals.ready_journals import planted_effect

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.reproduction import reproduction


def test_a_shell_can_parse_the_command_that_repeats_an_experiment():
    *_, last_line = reproduction(content(fold(planted_effect()), place="a folder/x"))
    assert shlex.split(last_line) == [
        "esper-ab",
        "launch",
        "a folder/x/experiment.toml",
        "--output-dir",
        "a folder/x-again",
    ]
