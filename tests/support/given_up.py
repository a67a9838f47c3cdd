"""A command of ours in a process that has given up a worker's thread; Python says at its end that it was torn down.

    python -m support.given_up COMMAND [ARGUMENT…]
"""

from __future__ import annotations

import atexit
import sys

from esper_ab.commands.cli import main
from esper_ab.contracts.messages import WorkerOrder
from esper_ab.launchers.inline import InlineLauncher
from support import fake_plans

if __name__ == "__main__":
    atexit.register(sys.stdout.write, "torn down")
    plan = fake_plans.plan()
    order = WorkerOrder(
        endpoint="", worker="w00", incarnation=1, lane=plan.lanes[0], arithmetic=plan.experiment.arithmetic,
        experiment_dir=sys.argv.pop(1), log_file="w00.log",
    )  # fmt: skip
    InlineLauncher("support.hanging:main").start(order).kill()
    sys.exit(main())
