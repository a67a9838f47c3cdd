"""One answer of a module of the data plane, which may import torch; the control plane does not."""

from __future__ import annotations

import os
import subprocess

from esper_ab.contracts.endings import how_ended
from esper_ab.contracts.errors import EsperError, UsageError
from esper_ab.contracts.own_packages import child_command, child_environment
from esper_ab.contracts.visible import visible_line


def answer_of(module: str, *arguments: str) -> str:
    """Run `module` as a program and return its output; UsageError when it refuses (status 2), EsperError when it fails.

    Its last line on stderr is the message in both cases.
    """
    child = subprocess.run(
        child_command(module, *arguments), capture_output=True, text=True, errors="replace",
        env=child_environment(os.environ), check=False,
    )  # fmt: skip
    if child.returncode == 0:
        return child.stdout
    last = (child.stderr.strip() or f"it {how_ended(child.returncode)} and said nothing").splitlines()[-1]
    message = visible_line(last.removeprefix("error: "))
    if child.returncode == UsageError.exit_code:
        raise UsageError(message)
    raise EsperError(f"{module}: {message}")
