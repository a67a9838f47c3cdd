"""Frame stacking: a policy sees its environment's last observations in one row, the oldest first.

The stack of a new episode is filled with its first observation, as by Gymnasium's FrameStackObservation (Mnih et al.
2015, Nature 518, methods, stack four frames so that velocities can be seen).
"""

from __future__ import annotations

from workers.arrays import Bools, Floats32, all_true


class FrameStack:
    """The last `depth` observations of each environment; a depth of 1 passes observations through."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self.rows: Floats32 | None = None  # [E, depth * width] of the last decision; None before the first
        self._fresh: Bools  # [E], whose next observation is the first of an episode

    def begin(self, n_envs: int, kept_rows: Floats32 | None = None, kept: Bools | None = None) -> None:
        """Begin a rollout; environments in the mask `kept` [E] go on from `kept_rows`."""
        self.rows = kept_rows
        self._fresh = all_true(n_envs) if kept is None else ~kept

    def push(self, observation: Floats32) -> Floats32:
        """Add the observations [E, width] of a step; return all stacks [E, depth * width]."""
        if self._depth > 1:
            self.rows = self.after(observation)
            self._fresh = self._fresh & False
            return self.rows
        return observation

    def after(self, observation: Floats32) -> Floats32:
        """Return the stacks as `push` would, without adding anything."""
        if self._depth == 1:
            return observation
        filled_rows: Floats32 = observation.repeat(self._depth, 0).reshape(len(observation), -1)
        if self.rows is None:
            return filled_rows
        width = observation.shape[1]
        going_on = ~self._fresh
        filled_rows[going_on, :-width] = self.rows[going_on, width:]
        return filled_rows

    def restart(self, envs: Bools) -> None:
        """Have the environments in the mask `envs` [E] begin another episode."""
        self._fresh = self._fresh | envs
