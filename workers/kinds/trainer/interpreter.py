"""Which Python a command runs: `python` is the one that the user's shell finds, which need not be esper_ab's own."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from esper_ab.contracts.worker_order import UsersShell

_PYTHON = re.compile(r"python[0-9.]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SAYS = "import sys; print(sys.executable); print(sys.version.split()[0])"
_LIMIT_S = 30.0


def other_interpreter(command: str, shell: UsersShell) -> str:
    """Return the path and the version of a command's Python: "/usr/bin/python3 (3.11.7)".

    Returns "" if it is the Python of this process, or if the command does not begin with the bare name of a Python.
    """
    variables = shell.variables()
    program = shutil.which(_program(command), path=variables.get("PATH"))
    if program is None or Path(program).parent.resolve() == Path(sys.executable).parent.resolve():
        return ""
    try:
        answer = subprocess.run(
            [program, "-c", _SAYS],
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=True,
        )
        path, version = answer.stdout.decode(errors="surrogateescape").splitlines()
    except (OSError, subprocess.SubprocessError, ValueError):
        return program
    if Path(path).parent.resolve() == Path(sys.executable).parent.resolve():  # a shim that leads to ours
        return ""
    return f"{path} ({version})"


def _program(command: str) -> str:
    """Return the name of the Python that a command begins with, also behind `env NAME=VALUE …`; "" if there is none."""
    program, *other_words = shlex.split(command)
    if program == "env":
        program = next((word for word in other_words if not _VARIABLE.match(word)), "")
    return program if _PYTHON.fullmatch(program) else ""
