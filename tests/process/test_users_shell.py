"""A user's program inherits the user's shell environment in the rehearsal and in every run."""

import pytest
from support.processes import users_shell

REHEARSALS = 4  # three of the first group, one of the other
RUNS = 2


@pytest.mark.parametrize("launcher", ["local", "inline"])
def test_a_program_inherits_the_shell_environment_plus_documented_variables(tmp_path, launcher):
    direct_facts, launched_facts = users_shell.inherited_facts(tmp_path, "--launcher", launcher)
    assert len(launched_facts) == REHEARSALS + RUNS
    for facts in launched_facts:
        assert users_shell.changed(direct_facts["variables"], facts.pop("variables")) <= users_shell.named_on_the_page()
        assert facts == {name: value for name, value in direct_facts.items() if name != "variables"}


@pytest.mark.slow
def test_helper_processes_of_a_trainer_inherit_the_shell_environment(tmp_path):
    """The worker ignores Ctrl-C and hang-ups, so a terminal does not end the helpers of a live run."""
    direct_facts, launched_facts = users_shell.inherited_facts(tmp_path, "--episodes", "1", program="trainer.py")
    inherited_names = ("folder", "Umask", "descriptors", "limits", "path", "SigBlk")
    for facts in launched_facts:
        assert users_shell.changed(direct_facts["variables"], facts["variables"]) <= users_shell.named_on_the_page()
        assert {name: facts[name] for name in inherited_names} == {name: direct_facts[name] for name in inherited_names}
