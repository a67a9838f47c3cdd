"""What goes wrong and is mended, on stderr as it happens: a worker that was started again, with the end of its log."""

from __future__ import annotations

import sys
from contextlib import suppress

from esper_ab.contracts.messages import Progress
from esper_ab.contracts.visible import visible, visible_line
from esper_ab.journal.events import AnyEvent, Ledger

_TOLD = ("restart", "start_delayed", "dropped_pair", "damaged_checkpoint", "inexact_resume")


class Warnings:
    """An observer; writes to whatever `sys.stderr` is at the time, so that a live view can keep itself below."""

    def __init__(self, *, ledger: bool) -> None:
        """`ledger`: tell what became of it, too; not needed beside a live view, which shows the ledger."""
        self._ledger = ledger

    def observe(self, event: AnyEvent | Progress | str) -> None:
        if isinstance(event, str):
            with suppress(OSError):  # it can lead to a file on the disk that is full; said later, then
                sys.stderr.write(f"warning: {visible(event)}\n")
        elif self._ledger and isinstance(event, Ledger) and event.category in _TOLD:
            about = f"{event.run}: " if event.run else ""
            sys.stderr.write(f"warning: {about}{visible_line(event.detail)}\n")
