"""What the journal's first line says of the machine and the code. Names no environment variable: they hold secrets."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import subprocess
from pathlib import Path

_GIT_TIMEOUT_S = 10.0
_PACKAGES = ("esper_ab", "workers")
_SOURCES = (".py", ".npz")
_SHOWN = 16  # hexadecimal digits


def machine() -> dict[str, str]:
    """Where it runs."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "python": platform.python_version(),
    }


def code() -> dict[str, str]:
    """Hash of the installed sources; in a checkout also its commit and whether it was altered."""
    found = {"sources": sources()}
    commit = _git("rev-parse", "HEAD")
    if commit:
        found["commit"] = commit
        found["dirty"] = "yes" if _git("status", "--porcelain", "--untracked-files=no") else "no"
    return found


def sources() -> str:
    """sha256, shortened, over names and contents of all modules of both packages and of the data that ships with them.

    Tells states of the code apart that no commit holds.
    """
    whole = hashlib.sha256()
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)  # finds it without importing it
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(path for path in Path(folder).rglob("*") if path.suffix in _SOURCES):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                whole.update(f"{package}/{path.relative_to(folder).as_posix()} {content}\n".encode())
    return whole.hexdigest()[:_SHOWN]


def _git(*arguments: str) -> str:
    """Output of git in this package's folder; "" when there is no git or no checkout."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
