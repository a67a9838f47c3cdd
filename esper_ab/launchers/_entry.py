"""Entry points by name: the control plane never imports a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esper_ab.contracts.messages import WorkerOrder
from esper_ab.contracts.own_packages import add_working_directory, import_own


def call(entry: str, order: WorkerOrder) -> None:
    """Import and call "module:function" with `order`, in the worker's own process or thread."""
    module, _, function = entry.partition(":")
    main: Callable[[WorkerOrder], Any] = getattr(import_own(module), function)
    main(order)


def call_in_process(entry: str, order: WorkerOrder) -> None:
    """The same in a process of its own, which finds users' modules where the preflight found them."""
    add_working_directory()
    call(entry, order)
