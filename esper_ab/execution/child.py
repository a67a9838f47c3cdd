"""Get one answer from a data-plane module in a child process, because the control plane must not import torch."""

from __future__ import annotations

import os
import subprocess
from typing import TypeVar

import msgspec

from esper_ab.contracts.errors import EsperError, UsageError
from esper_ab.contracts.own_packages import child_command, child_environment
from esper_ab.contracts.wording import end_told, visible_line

Answer = TypeVar("Answer")


def answer_of(module: str, question: object, decoder: msgspec.json.Decoder[Answer], code: str = "") -> Answer:
    """Run `module` as a program with `question` as its input, and return its decoded output.

    Raises UsageError, with the program's last line on stderr, if the program refuses (exit status 2) or if user code
    that it runs fails; `code` names the user code. Raises EsperError if our own code fails.
    """
    child = subprocess.run(
        child_command(module), input=msgspec.json.encode(question), capture_output=True,
        env=child_environment(os.environ), check=False,
    )  # fmt: skip
    if child.returncode == 0 and (child.stdout or not code):
        return decoder.decode(child.stdout.decode(errors="replace"))
    said = child.stderr.decode(errors="replace").strip().splitlines()
    if child.returncode == UsageError.exit_code and said:
        raise UsageError(visible_line(said[-1].removeprefix("error: ")))
    ended = visible_line(end_told(child.returncode, said))
    if code:
        raise UsageError(f"{code} ended the process that ran it, which {ended}")
    raise EsperError(f"{module} {ended}")
