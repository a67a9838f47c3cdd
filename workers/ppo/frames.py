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
        self._fresh_mask: Bools  # [E], whose next observation is the first of an episode

    def begin(self, n_envs: int, kept_rows: Floats32 | None = None, kept_mask: Bools | None = None) -> None:
        """Begin a rollout; environments in `kept_mask` [E] go on from `kept_rows`."""
        self.rows = kept_rows
        self._fresh_mask = all_true(n_envs) if kept_mask is None else ~kept_mask

    def push(self, observation: Floats32) -> Floats32:
        """Add the observations [E, width] of a step; return all stacks [E, depth * width]."""
        if self._depth > 1:
            self.rows = self.after(observation)
            self._fresh_mask = self._fresh_mask & False
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
        continuing_mask = ~self._fresh_mask
        filled_rows[continuing_mask, :-width] = self.rows[continuing_mask, width:]
        return filled_rows

    def restart(self, envs: Bools) -> None:
        """Have the environments in the mask `envs` [E] begin another episode."""
        self._fresh_mask = self._fresh_mask | envs
