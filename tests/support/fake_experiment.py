"""A coordinator in a process of its own, with worker processes that have no torch: something to kill.

    python fake_experiment.py RUN_DIR EPISODES    to begin
    python fake_experiment.py RUN_DIR resume
"""

from __future__ import annotations

import sys
from pathlib import Path

import fake_plans

from esper_ab.control import conduct
from esper_ab.errors import EsperError
from esper_ab.launchers.local import LocalLauncher

if __name__ == "__main__":
    run_dir, launcher = Path(sys.argv[1]), LocalLauncher("fake_worker:main")
    try:
        if sys.argv[2] == "resume":
            conduct.resume(run_dir, launcher, ())
        else:
            conduct.run(fake_plans.plan(episodes=int(sys.argv[2])), run_dir, launcher, ())
    except EsperError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
