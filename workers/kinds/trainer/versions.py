"""The versions of Python and of packages that a trainer runs with, as far as they can be asked."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import PurePath
from platform import python_version

from esper_ab.contracts.trainer import is_command

_PYTHON = re.compile(r"python[0-9.]*")
_LIMIT_S = 60.0
# Prints the version of every package, and of Python under its own name.
_PROGRAM = (
    "import importlib.metadata as m, json, sys; "
    "print(json.dumps({**{d.name: d.version for d in m.distributions() if d.name}, 'Python': sys.version.split()[0]}))"
)


def versions_of(reference: str, folder: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the versions for a trainer that works in `folder`; {} if its command does not show which Python it runs.

    A Python file and a function run with the Python of this process.
    """
    if not is_command(reference):
        return {
            **{distribution.name: distribution.version for distribution in distributions() if distribution.name},
            "Python": python_version(),
        }
    python = _python_of(reference)
    if not python:
        return {}
    try:
        process = subprocess.run(
            [*python, "-c", _PROGRAM],
            cwd=folder,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=True,
        )
        versions: dict[str, str] = json.loads(process.stdout.decode().strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}
    return versions


def _python_of(command: str) -> list[str]:
    """Return the words of a command up to its Python: "uv run python", "env A=1 python3"; [] if it names none."""
    words = shlex.split(command)
    for index, word in enumerate(words):
        if _PYTHON.fullmatch(PurePath(word).name):
            return words[: index + 1]
        if word.endswith(".py"):
            launched = words[0] in ("uv", "poetry", "pdm", "pixi") and index > 1
            return [*words[:index], "python"] if launched else []
    return []
