"""How long a worker may be silent, and how often it may die, before something is done."""

from __future__ import annotations

import math

import msgspec

_STEPS_WAITED = 10  # an estimate may be wrong by two or three, and seeds and neighbours slow a step down


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long silence may last, seconds, and how often a worker may die."""

    floor_s: float = 60.0
    start_up_s: float = 300.0  # cold disks, compilation, first allocation
    factor: float = 5.0
    pause_s: float = 10.0  # the coordinator itself stood still this long (suspended): nobody is blamed for it
    disk_full_s: float = 600.0  # for room on the disk, before the experiment ends with DiskFull
    ping_s: float = math.inf  # a worker at rest that was not heard of for so long is asked whether it is there ...
    pong_s: float = 40.0  # ... and has so long to answer
    # Who stops the coordinator ends its workers, too, and need not wait: a scheduler that takes its machines back
    ended_together: bool = False
    say_s: float = 10.0  # a stop that takes longer says whom it waits for
    # at one milestone of a run: the last of them costs the replicate, the others are followed by a restart
    deaths: int = 3

    def across_nodes(self) -> Limits:
        """The same for workers on other machines, lent by a scheduler: a lost node is known within a minute."""
        return msgspec.structs.replace(self, ping_s=20.0, ended_together=True)

    def of_steps(self, step_s: float) -> Limits:
        """The same for runs whose steps, the only signs of life, take about `step_s` each."""
        return msgspec.structs.replace(self, start_up_s=max(self.start_up_s, _STEPS_WAITED * step_s))
