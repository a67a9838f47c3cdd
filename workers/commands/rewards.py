"""`python -m workers.commands.rewards QUESTION`: rewards scored on behaviours, before anything is trained.

QUESTION and the answer, one JSON line, are the structs of esper_ab.contracts.appraisal. Errors: exit status 2 and one
line.
"""

from __future__ import annotations

import sys

import msgspec

from esper_ab.contracts import catalog
from esper_ab.contracts.appraisal import AppraisalAnswer, AppraisalQuestion
from workers.appraisal.appraise import appraise, choose_arithmetic
from workers.commands.evaluate import torch_device
from workers.datasets.task import Task
from workers.growth.environment import DeviceData
from workers.native import library
from workers.native.build import Unusable
from workers.process import arithmetic

_decode = msgspec.json.Decoder(AppraisalQuestion).decode


def answer(question: AppraisalQuestion) -> AppraisalAnswer:
    """Play and score; ValueError, KeyError, OSError or Unusable (of a kernel) name what cannot be done."""
    chosen = question.arithmetic or choose_arithmetic(question.growth, question.device)
    library.check(chosen)
    arithmetic.pin(chosen)
    task: Task = catalog.entry("workers.tasks", question.task, "TASK")
    data = DeviceData.of(task.load(question.data_dir), torch_device(question.device))
    return appraise(question, chosen, data, task)


def main(text: str) -> int:
    """Answer one question; return exit status 0, or 2 with one line on stderr."""
    try:
        found = answer(_decode(text))
    except (ValueError, KeyError, OSError, Unusable) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        sys.stderr.write(f"error: {' '.join(str(reason).split())}\n")
        return 2
    sys.stdout.flush()  # what a user's reward has printed, so that the answer is the last line
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
