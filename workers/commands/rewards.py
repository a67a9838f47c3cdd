"""`python -m workers.commands.rewards`: score rewards on behaviours before any training.

The question (one JSON line on stdin) and the answer are structs of esper_ab.contracts.children. After an error, the
exit status is 2 and stderr has one line.
"""

from __future__ import annotations

import sys

import msgspec

from esper_ab.contracts import catalog
from esper_ab.contracts.reward_audit import RewardAuditAnswer, RewardAuditQuestion
from workers.commands.answering import answer_stdin
from workers.datasets.task import Task
from workers.devices.by_torch import device_here, pin
from workers.growth.samples import DeviceData
from workers.native import library
from workers.reward_audit.scoring import audit, choose_arithmetic


def answer(question: RewardAuditQuestion) -> RewardAuditAnswer:
    """Play the behaviours and score the rewards.

    Raises ValueError, KeyError, OSError or, for a kernel, Unusable; the message says what is impossible.
    """
    chosen = question.arithmetic or choose_arithmetic(question.growth, question.device)
    library.check(chosen)
    pin(chosen)
    task: Task = catalog.entry("workers.tasks", question.task, "TASK")
    data = DeviceData.of(task.load(question.data_dir), device_here(question.device))
    return audit(question, chosen, data, task)


if __name__ == "__main__":
    sys.exit(answer_stdin(answer, msgspec.json.Decoder(RewardAuditQuestion)))
