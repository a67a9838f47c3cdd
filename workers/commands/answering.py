"""Runs a child process that answers one question: JSON on stdin, the answer on stdout.

After an error, the exit status is 2 and stderr has one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import msgspec

from esper_ab.contracts.own_packages import take_output

Question = TypeVar("Question")
REFUSED = (ValueError, KeyError, OSError, RuntimeError)  # raised by an answer to say what cannot be done


def answer_stdin(answer: Callable[[Question], object], decoder: msgspec.json.Decoder[Question]) -> int:
    """Call `answer` with the question on stdin and write the result to stdout.

    Return 0, or 2 after an error, which is written to stderr as one line.
    """
    output = take_output()
    try:
        output.write(msgspec.json.encode(answer(decoder.decode(sys.stdin.buffer.readline()))))
    except REFUSED as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        sys.stderr.write(f"\nerror: {' '.join(str(reason).split())}\n")  # after what a user's code may have written
        return 2
    output.close()
    return 0
