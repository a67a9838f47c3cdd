"""Workers as forked processes: what is imported already costs them nothing. For those who kill hundreds of them."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal

from esper_ab.contracts.messages import WorkerOrder
from esper_ab.launchers._entry import call_in_process
from esper_ab.launchers.local import LocalLauncher, LocalWorker


class ForkLauncher(LocalLauncher):
    """As the local launcher in all but how a process begins."""

    def start(self, order: WorkerOrder) -> LocalWorker:
        """Over ipc."""
        process = multiprocessing.get_context("fork").Process(
            target=_begin, args=(self._entry, order), name=order.identity, daemon=False
        )
        process.start()
        return LocalWorker(order.identity, process)


def _begin(entry: str, order: WorkerOrder) -> None:
    """A spawned process has no signal handler and no open file of its parent."""
    signal.set_wakeup_fd(-1)
    kept = multiprocessing.parent_process().sentinel
    os.closerange(3, kept)
    os.closerange(kept + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    call_in_process(entry, order)
