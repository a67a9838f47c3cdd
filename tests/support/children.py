"""The environment of processes that a test or a script starts with modules of this folder."""

from __future__ import annotations

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def environment(**changes: str) -> dict[str, str]:
    """This process's, with `changes`, in which a child finds `support` and the packages of this checkout."""
    return os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"} | changes
