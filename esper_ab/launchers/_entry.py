"""Entry points by name: the control plane never imports a worker."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from esper_ab.contracts.messages import WorkerOrder


def call(entry: str, order: WorkerOrder) -> None:
    """Import and call "module:function" with `order`, in the worker's own process or thread."""
    module, _, function = entry.partition(":")
    main: Callable[[WorkerOrder], Any] = getattr(importlib.import_module(module), function)
    main(order)
