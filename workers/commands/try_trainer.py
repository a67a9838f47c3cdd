"""`python -m workers.commands.try_trainer`: one process's part of a trainer's rehearsal; a Trial in, a Tried out.

It refuses what the trainer does not do right, or raises, with exit status 2 and one line on stderr.
"""

from __future__ import annotations

import sys

import msgspec

from esper_ab.contracts.errors import USER_FAULTS, UsageError
from esper_ab.contracts.own_packages import take_output
from esper_ab.contracts.settings import Arithmetic
from workers.devices.by_torch import pin
from workers.trainer import module
from workers.trainer.rehearsal import Trial, attempt
from workers.user_rewards.user_code import line_of, one_line

_decode = msgspec.json.Decoder(Trial).decode


def main() -> int:
    """Try the trainer; return the exit status."""
    answer, trial = take_output(), _decode(sys.stdin.buffer.readline())
    asked = trial.question
    pin(Arithmetic(threads=asked.threads, deterministic=asked.deterministic))
    try:
        tried = attempt(trial, "cuda:0" if trial.gpu else "cpu")
    except USER_FAULTS as error:
        where = line_of(error, module.load(asked.reference)[0].train) if not isinstance(error, ValueError) else ""
        sys.stderr.write(f"\nerror: {one_line(error)}{where}\n")
        return UsageError.exit_code
    answer.write(msgspec.json.encode(tried))
    answer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
