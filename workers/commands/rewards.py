"""`python -m workers.commands.rewards`: rewards scored on behaviours, before anything is trained.

The question, one JSON line on stdin, and the answer are the structs of esper_ab.contracts.reward_audit. Errors: exit
status 2 and one line.
"""

from __future__ import annotations

import sys

import msgspec

from esper_ab.contracts import catalog
from esper_ab.contracts.own_packages import take_output
from esper_ab.contracts.reward_audit import RewardAuditAnswer, RewardAuditQuestion
from workers.datasets.task import Task
from workers.devices.by_torch import device_here, pin
from workers.growth.samples import DeviceData
from workers.native import library
from workers.native.build import Unusable
from workers.reward_audit.scoring import audit, choose_arithmetic

_decode = msgspec.json.Decoder(RewardAuditQuestion).decode


def answer(question: RewardAuditQuestion) -> RewardAuditAnswer:
    """Play and score; ValueError, KeyError, OSError or Unusable (of a kernel) name what cannot be done."""
    chosen = question.arithmetic or choose_arithmetic(question.growth, question.device)
    library.check(chosen)
    pin(chosen)
    task: Task = catalog.entry("workers.tasks", question.task, "TASK")
    data = DeviceData.of(task.load(question.data_dir), device_here(question.device))
    return audit(question, chosen, data, task)


def main() -> int:
    """Answer the question on stdin; return exit status 0, or 2 with one line on stderr."""
    output = take_output()
    try:
        found = answer(_decode(sys.stdin.buffer.readline()))
    except (ValueError, KeyError, OSError, Unusable) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        sys.stderr.write(f"error: {' '.join(str(reason).split())}\n")
        return 2
    output.write(msgspec.json.encode(found))
    output.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
