"""`python -m workers.kinds.growth.commands.rewards`: score rewards on behaviours before any training.

The question (one JSON line on stdin) and the answer are structs of esper_ab.contracts.children. After an error, the
exit status is 2 and stderr has one line.
"""

from __future__ import annotations

import sys

import msgspec

from esper_ab.contracts.reward_audit import RewardAuditAnswer, RewardAuditQuestion
from workers.commands.answering import answer_stdin
from workers.devices.by_torch import device_here, pin
from workers.kinds.growth.catalogues import task_named
from workers.kinds.growth.reward_audit.scoring import audit, choose_arithmetic
from workers.kinds.growth.samples import DeviceData
from workers.native import library


def answer(question: RewardAuditQuestion) -> RewardAuditAnswer:
    """Play the behaviours and score the rewards.

    Raises ValueError, KeyError, OSError or, for a kernel, Unusable; the message says what is impossible.
    """
    chosen_arithmetic = question.arithmetic or choose_arithmetic(question.growth, question.device)
    library.check(chosen_arithmetic)
    pin(chosen_arithmetic)
    task = task_named(question.task)
    data = DeviceData.of(task.load(question.data_dir), device_here(question.device))
    return audit(question, chosen_arithmetic, data, task)


if __name__ == "__main__":
    sys.exit(answer_stdin(answer, msgspec.json.Decoder(RewardAuditQuestion)))
