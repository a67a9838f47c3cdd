"""Reserve what the workers of a plan need, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from esper_ab.contracts.machine import Device
from esper_ab.contracts.worker_order import Lane
from esper_ab.launchers import Launcher


@contextmanager
def reserved(launcher: Launcher, lanes: Sequence[Lane], devices: Sequence[Device] = ()) -> Iterator[None]:
    """Reserve the resources of the lanes on entry, and release them on exit, also those of a later `reserve`.

    `devices`: as in `check_launcher`. Raises UsageError if some resources are not available.
    """
    try:
        reserve(launcher, lanes, devices)
        yield
    finally:
        launcher.release()


def reserve(launcher: Launcher, lanes: Sequence[Lane], devices: Sequence[Device] = ()) -> None:
    """Reserve the resources of the lanes instead of those reserved before; raises as `reserved` does."""
    launcher.use(devices)
    launcher.reserve(lanes)
