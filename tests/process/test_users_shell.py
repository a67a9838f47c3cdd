"""A user's program inherits what it inherits from the user's shell: in the rehearsal, in every run, however started."""

import pytest
from support import users_shell

REHEARSALS = 3
RUNS = 2


@pytest.mark.parametrize("launcher", ["local", "inline"])
def test_a_program_inherits_the_users_shell_and_what_the_page_names(tmp_path, launcher):
    alone, launched = users_shell.told(tmp_path, "--launcher", launcher)
    assert len(launched) == REHEARSALS + RUNS
    for one in launched:
        assert users_shell.changed(alone["variables"], one.pop("variables")) <= users_shell.named_on_the_page()
        assert one == {name: value for name, value in alone.items() if name != "variables"}


def test_helpers_of_a_python_trainer_end_by_sigterm_and_inherit_the_users_shell(tmp_path):
    """The worker ignores Ctrl-C and hang-ups, so that a terminal ends no helper of a run that goes on."""
    alone, launched = users_shell.told(tmp_path, "--episodes", "1", program="trainer.py")
    kept = ("folder", "Umask", "descriptors", "limits", "path", "SigBlk")
    for one in launched:
        assert users_shell.changed(alone["variables"], one["variables"]) <= users_shell.named_on_the_page()
        assert {name: one[name] for name in kept} == {name: alone[name] for name in kept}
