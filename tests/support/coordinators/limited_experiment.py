"""A coordinator process with few file descriptors.

    python -m support.coordinators.limited_experiment RUN_DIR SOFT HARD LANES LAUNCHER TRANSPORT

LAUNCHER is local or inline. Prints "exhausted" if no descriptor was free at one of the events.
"""

import errno
import os
import resource
import sys
from pathlib import Path

from support.coordinators import stand_in


class DescriptorObserver:
    """An observer that records whether no descriptor was free at one of the events."""

    exhausted = False

    def observe(self, event: object) -> None:
        try:
            os.close(os.dup(0))
        except OSError as error:
            self.exhausted |= error.errno == errno.EMFILE


def main(experiment_dir: Path, lanes: int, launcher: str, transport: str) -> None:
    """Run as many groups as lanes, one seed after the other."""
    from esper_ab.control import experiment_run, hub
    from esper_ab.control.preflight import check_launcher
    from esper_ab.control.rules.limits import Limits
    from esper_ab.launchers.inline import InlineLauncher
    from esper_ab.launchers.local import LocalLauncher
    from support.plans import fake_plans
    from support.workers.fake_worker import main_in_thread  # noqa: F401  imported while there are descriptors

    observer = DescriptorObserver()
    hub._HANDSHAKE_MS = 4000  # how long a silent stranger holds a descriptor
    run_launcher = (
        LocalLauncher("support.workers.fake_worker:main", transport=transport)
        if launcher == "local"
        else InlineLauncher("support.workers.fake_worker:main_in_thread", transport=transport)
    )
    groups = tuple("abcdefghijklmnopqrstuvwxyz"[:lanes])
    plan = fake_plans.plan(cores=lanes, groups=groups, episodes=3)
    check_launcher(run_launcher, plan.lanes)
    experiment_run.run(plan, experiment_dir, run_launcher, (observer,), Limits(start_up_s=60.0))
    sys.stdout.write("exhausted\n" if observer.exhausted else "")


if __name__ == "__main__":
    from esper_ab.contracts.errors import EsperError

    folder, soft, hard, n_lanes, launcher_name, transport_name = sys.argv[1:]
    stand_in.die_with_parent()
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(soft), int(hard)))
    try:
        main(Path(folder), int(n_lanes), launcher_name, transport_name)
    except EsperError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
