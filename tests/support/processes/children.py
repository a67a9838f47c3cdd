"""Processes that a test or a script starts with modules of this folder."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]


def environment(**changes: str) -> dict[str, str]:
    """This process's, with `changes`, in which a child finds `support` and the packages of this checkout."""
    return os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"} | changes


def python(*arguments: object, folder: Path | None = None, **changes: str) -> subprocess.CompletedProcess[str]:
    """A Python of its own with these arguments, in `folder`, to its end."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
