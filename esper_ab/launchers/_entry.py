"""Entry points by name: the control plane never imports a worker."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from esper_ab.contracts.messages import WorkerOrder


def call(entry: str, order: WorkerOrder) -> None:
    """Call "module:function" with `order`, where the worker is to live: only there its module is imported."""
    module, _, function = entry.partition(":")
    main: Callable[[WorkerOrder], Any] = getattr(importlib.import_module(module), function)
    main(order)
