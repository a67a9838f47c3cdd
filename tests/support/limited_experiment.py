"""A coordinator in a process of its own with few file descriptors, and somebody in it who takes the rest for a while.

    python -m support.limited_experiment RUN_DIR SOFT HARD LANES LAUNCHER TRANSPORT [hog]

LAUNCHER is local or inline. `hog` has every descriptor taken when a worker is to be started again, until a start is
late for it. What is printed: "exhausted" when at some event no descriptor was free, for whatever reason.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

from support import stand_in


class Hog:
    """An observer that sees whether descriptors are free, and has taken them until a start is late."""

    def __init__(self, waits: bool) -> None:
        self.waits = waits  # to take them
        self._taken: list[int] = []
        self._limits = (0, 0)
        self.exhausted = False

    def observe(self, event: object) -> None:
        try:
            os.close(os.dup(0))
        except OSError as error:
            self.exhausted |= error.errno == errno.EMFILE
        if getattr(event, "category", "") == "start_delayed" and self.waits:
            self.waits = False  # once
            while self._taken:
                os.close(self._taken.pop())
            resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)

    def take_all(self) -> None:
        if self._taken:
            return
        self._limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._limits[1], self._limits[1]))
        with suppress(OSError):
            while True:
                self._taken.append(os.dup(0))


def main(experiment_dir: Path, lanes: int, launcher: str, transport: str, hogs: bool) -> None:
    """Two lanes per block, as many blocks as lanes allow."""
    from esper_ab.contracts.messages import WorkerOrder
    from esper_ab.control import experiment_run, hub
    from esper_ab.control.preflight import check_launcher
    from esper_ab.control.rules.workers import Limits
    from esper_ab.launchers.inline import InlineLauncher
    from esper_ab.launchers.local import LocalLauncher, LocalWorker
    from support import fake_plans
    from support.fake_worker import main_in_thread  # noqa: F401  imported while there are descriptors

    hog = Hog(hogs)

    class Late(LocalLauncher):
        def start(self, order: WorkerOrder) -> LocalWorker:
            if order.incarnation > 1 and hog.waits:
                hog.take_all()
            return super().start(order)

    hub._HANDSHAKE_MS = 4000  # how long a silent stranger has a descriptor
    started_by = (
        Late("support.fake_worker:main", transport=transport) if launcher == "local"
        else InlineLauncher("support.fake_worker:main_in_thread", transport=transport)
    )  # fmt: skip
    groups = tuple("abcdefghijklmnopqrstuvwxyz"[:lanes])
    plan = fake_plans.plan(cores=lanes, groups=groups, episodes=3)
    check_launcher(started_by, plan.lanes)
    experiment_run.run(plan, experiment_dir, started_by, (hog,), Limits(start_up_s=60.0))
    sys.stdout.write("exhausted\n" if hog.exhausted else "")


if __name__ == "__main__":
    from esper_ab.contracts.errors import EsperError

    folder, soft, hard, n_lanes, by, over, *more = sys.argv[1:]
    stand_in.die_with_parent()
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(soft), int(hard)))
    try:
        main(Path(folder), int(n_lanes), by, over, more == ["hog"])
    except EsperError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
