"""A command of ours in a process that has given up a worker's thread; Python says at its end that it was torn down.

    python -m support.given_up COMMAND [ARGUMENT…]
"""

import atexit
import sys

from esper_ab.commands.cli import main
from esper_ab.launchers.inline import InlineLauncher
from support.orders import order

if __name__ == "__main__":
    atexit.register(sys.stdout.write, "torn down")
    given = order(experiment_dir=sys.argv.pop(1), log_file="w00.log")
    InlineLauncher("support.hanging:main").start(given).kill()
    sys.exit(main())
