"""`python -m workers.kinds.trainer.commands.try_trainer`: one process of a trainer's rehearsal.

Reads a Trial and writes a Tried. If the trainer raises an exception or breaks a rule, the exit status is 2 and stderr
has one line.
"""

from __future__ import annotations

import sys

import msgspec

from esper_ab.contracts.errors import USER_FAULTS
from esper_ab.contracts.settings import Arithmetic
from workers.commands.answering import answer_stdin
from workers.devices.by_torch import pin
from workers.kinds.trainer import module
from workers.kinds.trainer.trial import Trial, Tried, attempt
from workers.user_code.loading import line_of, one_line


def tried(trial: Trial) -> Tried:
    """Run one trial of the trainer; if the trial fails, raise ValueError with the trainer's error and its line."""
    question = trial.question
    pin(Arithmetic(threads=question.threads, deterministic=question.deterministic))
    try:
        return attempt(trial)
    except USER_FAULTS as error:
        if not isinstance(error, ValueError):
            line_words = line_of(error, module.load(question.reference)[0].train)
        else:
            line_words = ""
        raise ValueError(f"{one_line(error)}{line_words}") from error


if __name__ == "__main__":
    sys.exit(answer_stdin(tried, msgspec.json.Decoder(Trial)))
