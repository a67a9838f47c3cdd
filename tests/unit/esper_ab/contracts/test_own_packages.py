"""A child process that loads user code exits with the status that Python would have given it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("exception", "status", "words"),
    [
        ("None", 0, ""),
        ("SystemExit()", 0, ""),
        ("SystemExit(0)", 0, ""),
        ("SystemExit(3)", 3, ""),
        ("SystemExit('no such part')", 1, "no such part"),
        ("ValueError('wrong')", 1, "ValueError: wrong"),
    ],
)
def test_a_child_process_exits_with_the_status_of_its_exception(exception, status, words):
    code = f"from esper_ab.contracts.own_packages import _leave; _leave({exception})"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert process.returncode == status
    assert words in process.stderr
    assert bool(words) == bool(process.stderr)
