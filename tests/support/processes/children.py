"""Start Python processes that can import the modules of tests/support."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment variables with `changes`; children can import `support` and our packages."""
    return os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"} | changes


def python(*arguments: object, folder: Path | None = None, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments in `folder`, in a process of its own, and wait until it ends."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
