"""Limits on silence: how long a worker may take for what it does."""

from __future__ import annotations

import math

import msgspec

_STEPS_WAITED = 10  # an estimate may be off by a factor of 2 or 3, and seed modules and neighbours slow a step down


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits on silence and waiting, seconds, and how often a worker may die."""

    floor_s: float = 60.0
    start_up_s: float = 300.0  # cold disks, compilation, first allocation
    factor: float = 5.0
    pause_s: float = 10.0  # a longer gap means that the coordinator itself was suspended, so no worker is blamed
    disk_full_s: float = 600.0  # wait for disk space before the experiment ends with DiskFull
    ping_s: float = math.inf  # an idle worker that has been silent this long is pinged ...
    pong_s: float = 40.0  # ... and must answer within this time
    # The scheduler that stops the coordinator also kills its workers, so a stop does not wait for them.
    ended_together: bool = False
    say_s: float = 10.0  # a stop that takes longer names the workers that it waits for
    starts_s: float = math.inf  # since the start of this command, after which no further block starts ...
    ends_s: float = math.inf  # ... and after which blocks in progress stop, too
    # Deaths at one milestone after which a run's replicate is given up; after earlier ones, its worker is restarted.
    deaths: int = 3

    def across_nodes(self) -> Limits:
        """Return limits for workers on nodes of a scheduler: the loss of a node is noticed within a minute."""
        return msgspec.structs.replace(self, ping_s=20.0, ended_together=True)

    def of_steps(self, step_s: float) -> Limits:
        """Return limits for runs whose only signs of life are steps of about `step_s` seconds."""
        return msgspec.structs.replace(self, start_up_s=max(self.start_up_s, _STEPS_WAITED * step_s))
