"""Collects rollouts, with exactly the numbers that the policy saw; computes advantages and cuts sequences.

After an environment has ended, its steps are not `valid`: they hold zeros and must be excluded from every sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Bools, Floats, Floats32, Ints
from workers.environments import Cut, Decisions
from workers.ppo.policy import Decision


@dataclass(frozen=True)
class Rollout:
    """T steps of E environments."""

    raw: Floats32  # [T, E, width], observations before normalisation, for the running moments
    observations: Floats32  # [T, E, width], as the policy saw them
    actions: Decisions  # [T, E, heads]
    masks: Bools  # [T, E, heads, widest head]; all False: head unused
    log_probs: Floats  # [T, E], joint, of the policy that took the action
    values: Floats  # [T, E], in the critic's units
    rewards: Floats  # [T, E]
    dones: Bools  # [T, E], the step was the last of its episode, or of the rollout
    bootstrap: Floats  # [T, E], value of what an environment that was cut off saw last, critic's units
    truncated: Bools  # [T, E], cut off by a limit after this step
    starts: Bools  # [T, E], the step began with an empty memory, in the middle of the rollout
    valid: Bools  # [T, E], the environment was alive when it decided


class RolloutBuffer:
    """Collects a rollout: call `decided`, then `rewarded`, once per step."""

    def __init__(self) -> None:
        self._steps: list[tuple[NDArray[Any], ...]] = []
        self._outcomes: list[tuple[Floats, Bools, Bools]] = []
        self._cuts: dict[int, tuple[Cut, Floats]] = {}  # by step

    def __len__(self) -> int:
        return len(self._outcomes)

    def decided(self, raw: Floats32, normalised: Floats32, decision: Decision) -> None:
        """Add the first half of a step: raw and normalised observation [E, width] and the decision made on them."""
        if len(self._steps) != len(self._outcomes):
            raise RuntimeError("act() twice without reward()")
        self._steps.append((raw, normalised, *decision))

    def rewarded(self, rewards: Floats, done: Bools, alive: Bools) -> None:
        """Add the second half: rewards, environments that ended with this step, environments that decided; each [E]."""
        if len(self._steps) != len(self._outcomes) + 1:
            raise RuntimeError("reward() without act()")
        if not np.isfinite(rewards[alive]).all():
            raise ValueError(f"non-finite reward at step {len(self)}: {rewards.tolist()}")
        self._outcomes.append((np.where(alive, rewards, 0.0), done | ~alive, alive))

    def cut_off(self, cut: Cut, values: Floats) -> None:
        """Add the truncations after the last step; `values` [E] of the last observations, in the critic's units."""
        self._cuts[len(self) - 1] = (cut, values)

    def rollout(self) -> Rollout | None:
        """Return everything collected, stacked over steps; None if no step is valid."""
        if len(self._steps) != len(self._outcomes):
            raise RuntimeError("an episode ends after a complete step: act() and reward()")
        if not any(alive.any() for _, _, alive in self._outcomes):
            return None
        steps = zip(*self._steps, strict=True)
        raw, observations, actions, masks, log_probs, values = (np.stack(column) for column in steps)
        rewards, dones, valid = (np.stack(column) for column in zip(*self._outcomes, strict=True))
        bootstrap, truncated, starts = np.zeros(rewards.shape), np.zeros_like(dones), np.zeros_like(dones)
        for step, (cut, beyond) in self._cuts.items():
            truncated[step] = cut.truncated & valid[step]
            bootstrap[step] = np.where(truncated[step], beyond, 0.0)
            starts[step + 1 : step + 2] = cut.restarted
        return Rollout(
            raw=raw, observations=observations, actions=actions, masks=masks, log_probs=log_probs, values=values,
            rewards=rewards, dones=dones, bootstrap=bootstrap, truncated=truncated, starts=starts, valid=valid,
        )


def gae(rewards: Floats, values: Floats, dones: Bools, gamma: float, lam: float) -> tuple[Floats, Floats]:
    """Return advantages and returns (advantage + value), both [T, E], of generalised advantage estimation.

    rewards, values, dones: [T, E]. A step t with `dones[t]`, and the last one, is terminal: later steps do not affect
    it. Rewards, values and results have the same unit. Schulman et al. 2016, arXiv:1506.02438.
    """
    continues = 1.0 - dones.astype(np.float64)
    next_values = np.concatenate([values[1:], np.zeros_like(values[:1])])
    deltas = rewards + gamma * continues * next_values - values
    decay, advantages = gamma * lam * continues, deltas.copy()
    for step in reversed(range(len(deltas) - 1)):
        advantages[step] += decay[step] * advantages[step + 1]
    return advantages, advantages + values


Arrays = dict[str, NDArray[Any]]


def of_steps(arrays: Arrays, valid: Bools) -> Arrays:
    """Return every valid step as its own sequence, [1, N, …] from [T, E, …], for policies without memory."""
    return {name: array[valid][None] for name, array in arrays.items()}


def cut_sequences(arrays: Arrays, starts: Bools) -> tuple[Arrays, Ints, Bools]:
    """Cut columns [T, E, …] before each step in `starts` [T, E]; sequences [L, N, …], shorter ones padded with zeros.

    Also return the column of each sequence, [N], and whether it is the first of its column, [N].
    """
    steps, columns = starts.shape
    begins = [np.concatenate(([0], np.flatnonzero(starts[1:, column]) + 1)) for column in range(columns)]
    of_column = np.repeat(np.arange(columns), [len(of) for of in begins])
    begin = np.concatenate(begins)
    length = np.concatenate([np.diff(of, append=steps) for of in begins])
    within = np.arange(length.max())[:, None] < length  # [L, N]
    at = np.where(within, begin + np.arange(length.max())[:, None], 0)
    found = {}
    for name, array in arrays.items():
        found[name] = np.where(within.reshape(*within.shape, *[1] * (array.ndim - 2)), array[at, of_column], 0)
    return {name: array.astype(arrays[name].dtype) for name, array in found.items()}, of_column, begin == 0
