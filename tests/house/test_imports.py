"""What the light commands must not load: seconds of imports before a line of help are seconds of the user's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "numpy", "scipy", "matplotlib", "duckdb")
SHOW = (
    "import sys, json\n"
    "from esper_ab.commands._exit_status import invoke\n"
    "from esper_ab.commands.cli import group\n"
    "status = invoke(group, sys.argv[1:], 'esper-ab')\n"
    "print(json.dumps([status, sorted({name.partition('.')[0] for name in sys.modules})]))\n"
)


def loaded(*args: str) -> tuple[int, set[str]]:
    child = subprocess.run([sys.executable, "-c", SHOW, *args], capture_output=True, text=True, check=True)
    status, modules = json.loads(child.stdout.splitlines()[-1])
    return status, set(modules)


@pytest.mark.parametrize("args", [("--help",), ("launch", "--help"), ("status", "--help"), ("report", "--help")])
def test_help_loads_nothing_heavy(args: tuple[str, ...]) -> None:
    status, modules = loaded(*args)
    assert status == 0
    assert not modules & {*HEAVY, "msgpack", "zmq"}


def test_status_loads_nothing_heavy(tmp_path: Path) -> None:
    status, modules = loaded("status", str(tmp_path / "nowhere"))
    assert status == 2
    assert not modules & set(HEAVY)
