"""The budget of an assertion: so many seeds, and so many minutes of wall time, its rehearsal included."""

from __future__ import annotations

import math
import time

from esper_ab.campaign.campaign import CampaignPlan
from esper_ab.contracts.errors import UsageError
from esper_ab.plan.estimate import duration
from esper_ab.stats.least_pairs import LEAST_PAIRS

_GROWTH = 1.25  # seeds at the next look, per seed so far


class Budget:
    """Seeds and minutes, of which looks use a part each. The seeds of a wave train at the same time."""

    def __init__(self, function: str, seeds: object, minutes: object) -> None:
        """Begin now; UsageError, which names `function`, if a number is no budget."""
        if not isinstance(seeds, int) or isinstance(seeds, bool) or seeds < LEAST_PAIRS:
            raise UsageError(
                f"{function}: seeds={seeds!r}: expected {LEAST_PAIRS} or more, because no claim is made from fewer"
            )
        if minutes is not None and (
            not isinstance(minutes, int | float) or isinstance(minutes, bool) or not minutes > 0
        ):
            raise UsageError(f"{function}: minutes={minutes!r}: expected a number above 0")
        self.seeds = seeds
        self._function = function
        self._minutes = math.inf if minutes is None else float(minutes)
        self._end_s = time.monotonic() + 60.0 * self._minutes
        self._wave_size = 1
        self._waves = 1  # of the look that was begun last
        self._look_begin_s = 0.0
        self._lacks_time = False

    def begin_first_look(self, plan: CampaignPlan) -> None:
        """Take the number of runs that train at the same time; UsageError if the first look takes too long."""
        (part,) = plan.parts
        self._wave_size = len(part.plan.lanes)
        self._waves = math.ceil(LEAST_PAIRS / self._wave_size)
        self._look_begin_s = time.monotonic()
        needed_s = part.cost.duration_s
        if needed_s > self._end_s - self._look_begin_s:
            raise UsageError(
                f"{self._function}: minutes={self._minutes:g}: the first {LEAST_PAIRS} runs take {duration(needed_s)}, "
                "which is more than is left after the rehearsal; give more minutes, or shorten the training"
            )

    def next_look(self, seeds: int) -> int:
        """Begin another look after one of `seeds` seeds has ended, and return its number of seeds; 0: none is left.

        It takes as long per wave as the look before.
        """
        now_s = time.monotonic()
        wave_s = (now_s - self._look_begin_s) / self._waves
        added = math.ceil((_GROWTH - 1.0) * seeds / self._wave_size) * self._wave_size
        added = min(added, self.seeds - seeds)
        waves = math.ceil(added / self._wave_size)
        self._lacks_time = now_s + waves * wave_s > self._end_s
        if not added or self._lacks_time:
            return 0
        self._waves = waves
        self._look_begin_s = now_s
        return seeds + added

    def used(self) -> str:
        """Say what is used up after the last look."""
        if self._lacks_time:
            return f"No time is left for further runs (minutes={self._minutes:g})"
        return f"All {self.seeds} seeds are used"
