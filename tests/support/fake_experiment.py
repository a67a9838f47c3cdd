"""A coordinator in a process of its own, with worker processes that have no torch: something to kill.

    python -m support.fake_experiment RUN_DIR EPISODES [KEY…]    to begin, with these settings switched on
    python -m support.fake_experiment RUN_DIR resume
"""

import sys
from pathlib import Path

from esper_ab.contracts.errors import EsperError
from esper_ab.control import experiment_run
from esper_ab.launchers.local import LocalLauncher
from support import fake_plans, stand_in

if __name__ == "__main__":
    stand_in.die_with_parent()
    experiment_dir, launcher = Path(sys.argv[1]), LocalLauncher("support.fake_worker:main")
    try:
        if sys.argv[2] == "resume":
            experiment_run.resume(experiment_dir, launcher, ())
        else:
            plan = fake_plans.plan(episodes=int(sys.argv[2]), **dict.fromkeys(sys.argv[3:], True))
            experiment_run.run(plan, experiment_dir, launcher, ())
    except EsperError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
