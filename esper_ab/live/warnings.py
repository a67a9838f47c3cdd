"""Warnings on stderr as they occur: faults that were recovered, such as a restarted worker with the end of its log."""

from __future__ import annotations

import sys
from contextlib import suppress

from esper_ab.contracts.messages import Progress
from esper_ab.contracts.visible import visible, visible_line
from esper_ab.journal.events import AnyEvent, Ledger

_TOLD = ("restart", "start_delayed", "dropped_pair", "damaged_checkpoint", "inexact_resume")


class Warnings:
    """Observer that writes to the current `sys.stderr`, so that a live view can keep itself below."""

    def __init__(self, *, ledger: bool) -> None:
        """Create the observer; `ledger`: also print ledger entries, which a live view already shows."""
        self._ledger = ledger

    def observe(self, event: AnyEvent | Progress | str) -> None:
        if isinstance(event, str):
            with suppress(OSError):  # stderr may be a file on the full disk; reported later, then
                sys.stderr.write(f"warning: {visible(event)}\n")
        elif self._ledger and isinstance(event, Ledger) and event.category in _TOLD:
            about = f"{event.run}: " if event.run else ""
            sys.stderr.write(f"warning: {about}{visible_line(event.detail)}\n")
