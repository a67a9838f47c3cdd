"""Get one answer from a data-plane module in a child process, because the control plane must not import torch."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from esper_ab.contracts.errors import EsperError, UsageError
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.process_endings import describe_end
from esper_ab.contracts.visible import visible_line
from esper_ab.launchers import begin_here

Answer = TypeVar("Answer")


def answer_of(module: str, question: object, decoder: msgspec.json.Decoder[Answer], code: str = "") -> Answer:
    """Run `module` as a program with `question` as its input, and return its decoded output.

    Raises UsageError, with the program's last line on stderr, if the program refuses (exit status 2) or if user code
    that it runs fails; `code` names the user code. Raises EsperError if our own code fails.
    """
    with begin_here(child_command(module), msgspec.json.encode(question)) as child:
        answer, complaint = child.communicate()
    if child.returncode == 0 and (answer or not code):
        return decoder.decode(answer.decode(errors="replace"))
    lines = complaint.decode(errors="replace").strip().splitlines()
    if child.returncode == UsageError.exit_code and lines:
        raise UsageError(visible_line(lines[-1].removeprefix("error: ")))
    end_words = visible_line(describe_end(child.returncode or 0, lines))
    if code:
        raise UsageError(f"{code} ended the process that ran it, which {end_words}")
    raise EsperError(f"{module} {end_words}")
