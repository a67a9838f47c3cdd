"""One rollout: every environment's steps, with exactly the numbers that the policy saw.

An environment that ends early leaves steps that are not `valid`: they hold zeros and must be excluded from every sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.environments import Cut, Decisions
from workers.ppo.decide import Decision, log_probs_of


@dataclass(frozen=True)
class Rollout:
    """T steps of E environments."""

    raw: NDArray[np.float32]  # [T, E, width], observations before normalisation, for the running moments
    observations: NDArray[np.float32]  # [T, E, width], as the policy saw them
    actions: Decisions  # [T, E, heads]
    masks: NDArray[np.bool_]  # [T, E, heads, widest head]; all False: head unused
    log_probs: NDArray[np.float64]  # [T, E], joint, of the policy that took the action
    values: NDArray[np.float64]  # [T, E], in the critic's units
    rewards: NDArray[np.float64]  # [T, E]
    dones: NDArray[np.bool_]  # [T, E], the step was the last of its episode, or of the rollout
    bootstrap: NDArray[np.float64]  # [T, E], value of what an environment that was cut off saw last, critic's units
    truncated: NDArray[np.bool_]  # [T, E], cut off by a limit after this step
    starts: NDArray[np.bool_]  # [T, E], the step began with an empty memory, in the middle of the rollout
    valid: NDArray[np.bool_]  # [T, E], the environment was alive when it decided


class RolloutBuffer:
    """Collects a rollout: `decided`, then `rewarded`, once per step."""

    def __init__(self) -> None:
        self._steps: list[tuple[NDArray[np.float32], NDArray[np.float32], Decision]] = []
        self._outcomes: list[tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]] = []
        self._cuts: dict[int, tuple[Cut, NDArray[np.float64]]] = {}  # by step

    def __len__(self) -> int:
        return len(self._outcomes)

    def decided(self, raw: NDArray[np.float32], normalised: NDArray[np.float32], decision: Decision) -> None:
        """Add the first half of a step: raw and normalised observation [E, width] and the decision on it."""
        if len(self._steps) != len(self._outcomes):
            raise RuntimeError("act() twice without reward()")
        self._steps.append((raw, normalised, decision))

    def rewarded(self, rewards: NDArray[np.float64], done: NDArray[np.bool_], alive: NDArray[np.bool_]) -> None:
        """Add the second half: rewards [E], environments that ended with this step [E], those that decided [E]."""
        if len(self._steps) != len(self._outcomes) + 1:
            raise RuntimeError("reward() without act()")
        if not np.isfinite(rewards[alive]).all():
            raise ValueError(f"non-finite reward at step {len(self)}: {rewards.tolist()}")
        self._outcomes.append((np.where(alive, rewards, 0.0), done | ~alive, alive))

    def cut_off(self, cut: Cut, values: NDArray[np.float64]) -> None:
        """Add that episodes were cut off after the last step; `values` [E] of what they saw last, critic's units."""
        self._cuts[len(self) - 1] = (cut, values)

    def rollout(self) -> Rollout | None:
        """Return everything collected, stacked over steps; None when there is no valid step."""
        if len(self._steps) != len(self._outcomes):
            raise RuntimeError("an episode ends after a complete step: act() and reward()")
        if not any(alive.any() for _, _, alive in self._outcomes):
            return None
        raw, normalised, decisions = zip(*self._steps, strict=True)
        actions = np.stack([decision.actions for decision in decisions])
        masks = np.stack([decision.masks for decision in decisions])
        rewards, dones, valid = (np.stack(column) for column in zip(*self._outcomes, strict=True))
        bootstrap, truncated, starts = np.zeros(rewards.shape), np.zeros_like(dones), np.zeros_like(dones)
        for step, (cut, values) in self._cuts.items():
            truncated[step] = cut.truncated & valid[step]
            bootstrap[step] = np.where(truncated[step], values, 0.0)
            starts[step + 1 : step + 2] = cut.restarted
        return Rollout(
            raw=np.stack(raw), observations=np.stack(normalised), actions=actions, masks=masks,
            log_probs=log_probs_of(np.stack([decision.logits for decision in decisions]), masks, actions),
            values=np.stack([decision.values for decision in decisions]), rewards=rewards, dones=dones,
            bootstrap=bootstrap, truncated=truncated, starts=starts, valid=valid,
        )
