"""A thread cannot be ended: the process that has given one up ends without tearing its libraries down."""

import pytest
from support.children import python

GIVEN_UP = """
import atexit, sys
from esper_ab.commands.cli import main
from esper_ab.launchers.inline import InlineLauncher
from support.orders import order
atexit.register(sys.stdout.write, "torn down")
InlineLauncher("support.hanging:main").start(order(experiment_dir=sys.argv.pop(1), log_file="w00.log")).kill()
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("arguments", "status", "out"),
    [
        (("--version",), 0, "esper-ab"),
        (("status", "nowhere"), 2, ""),
    ],
)
def test_a_command_leaves_at_once_with_its_status_and_its_words(tmp_path, arguments, status, out):
    done = python("-c", GIVEN_UP, tmp_path, *arguments)
    assert done.returncode == status, done.stderr
    assert done.stdout.startswith(out)
    assert "torn down" not in done.stdout
    assert bool(done.stderr) == bool(status)
