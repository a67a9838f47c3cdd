"""A thread cannot be ended: the process that has given one up ends without tearing its libraries down."""

import pytest
from support.children import python


@pytest.mark.parametrize(("arguments", "status", "out"), [
    (("--version",), 0, "esper-ab"), (("status", "nowhere"), 2, ""),
])  # fmt: skip
def test_a_command_leaves_at_once_with_its_status_and_its_words(tmp_path, arguments, status, out):
    done = python("-m", "support.given_up", tmp_path, *arguments)
    assert done.returncode == status, done.stderr
    assert done.stdout.startswith(out)
    assert "torn down" not in done.stdout
    assert bool(done.stderr) == bool(status)
