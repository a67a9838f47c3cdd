"""One rollout: every environment's steps, with exactly the numbers that the policy saw; its advantages, its sequences.

A decision is made for every environment at once, head by head. An environment that ends early leaves steps that are not
`valid`: they hold zeros and must be excluded from every sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.arrays import Bools, Floats, Floats32, Ints, all_false, int_zeros
from workers.environments import Cut, Decisions, Masks
from workers.ppo.distributions import (
    choice_weights,
    joint_log_prob,
    masked_log_softmax,
    most_probable,
    normal_log_prob,
    normal_sample,
    sample,
)
from workers.ppo.policy import ActorCritic, RecurrentState


@dataclass(frozen=True)
class Decision:
    """The decisions of one step, and what the update needs to know about them."""

    actions: Decisions  # [E, heads]
    masks: Bools  # [E, heads, widest head]; continuous: [E, dimensions, 0]
    logits: Floats32  # [E, heads, widest head]; meaningless where masked; continuous: [E, dimensions, 2]
    values: Floats  # [E], normalised
    state: RecurrentState  # after the step


@torch.inference_mode()
def log_probs_of(logits: Floats32, masks: Bools, actions: Decisions) -> Floats:
    """Return joint log-probabilities [...] over used heads of actions [..., heads]; logits and masks as in a Decision.

    Works for any number of decisions at once; a rollout computes all of its steps in one call.
    """
    if actions.dtype.kind == "f":
        return normal_log_prob(torch.from_numpy(logits), torch.from_numpy(actions)).numpy()
    valid = torch.from_numpy(masks)
    log_probs = masked_log_softmax(torch.from_numpy(logits), valid)
    return joint_log_prob(log_probs, valid, torch.from_numpy(actions)).numpy()


@torch.inference_mode()
def decide(
    policy: ActorCritic, observation: Floats32, state: RecurrentState, masks: Masks,
    uniforms: Floats | None,
) -> Decision:
    """Decide for normalised observation [E, width] with uniforms [E, heads].

    Without uniforms it decides greedily, by the mean where decisions are continuous.
    Every mask is computed from all earlier choices, so a later head may be masked by any earlier one.
    """
    features, after = policy.step(torch.from_numpy(observation), state)
    values = policy.values(features).double().numpy()
    choose = _continuous if policy.shape.dimensions else _by_heads
    actions, chosen_from, logits = choose(policy, features, masks, uniforms)
    return Decision(actions=actions, masks=chosen_from, logits=logits, values=values, state=after)


def _continuous(
    policy: ActorCritic, features: Tensor, masks: Masks, uniforms: Floats | None
) -> tuple[Decisions, Bools, Floats32]:
    """Return actions [E, dimensions], no masks, and the parameters that the actions were drawn with."""
    parameters = policy.logits(features, features)
    actions = parameters[..., 0].double() if uniforms is None else normal_sample(parameters, uniforms)
    return actions.numpy(), all_false((*actions.shape, 0)), parameters.numpy()


def _by_heads(
    policy: ActorCritic, features: Tensor, masks: Masks, uniforms: Floats | None
) -> tuple[Decisions, Bools, Floats32]:
    """Return actions [E, heads], with masks and logits [E, heads, widest head]."""
    sizes, n_envs = policy.shape.head_sizes, len(features)
    actions = int_zeros((n_envs, len(sizes)))
    all_logits = np.zeros((n_envs, len(sizes), max(sizes)), dtype=np.float32)
    all_masks = all_false((n_envs, len(sizes), max(sizes)))
    for group in policy.groups:
        logits = group.forward(features, torch.from_numpy(actions)).numpy()
        weights = choice_weights(logits)
        start = 0
        for head in group.heads:
            stop = start + sizes[head]
            mask = masks.mask(head, actions[:, :head])
            all_logits[:, head, : sizes[head]] = logits[:, start:stop]
            if mask.any():  # else the head is unused everywhere, with action 0
                all_masks[:, head, : sizes[head]] = mask
                of_head = weights[:, start:stop]
                if uniforms is None:
                    actions[:, head] = most_probable(of_head, mask)
                else:
                    actions[:, head] = sample(of_head, mask, uniforms[:, head])
            start = stop
    return actions, all_masks, all_logits


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
    """Collects a rollout: `decided`, then `rewarded`, once per step."""

    def __init__(self) -> None:
        self._steps: list[tuple[Floats32, Floats32, Decision]] = []
        self._outcomes: list[tuple[Floats, Bools, Bools]] = []
        self._cuts: dict[int, tuple[Cut, Floats]] = {}  # by step

    def __len__(self) -> int:
        return len(self._outcomes)

    def decided(self, raw: Floats32, normalised: Floats32, decision: Decision) -> None:
        """Add the first half of a step: raw and normalised observation [E, width] and the decision on it."""
        if len(self._steps) != len(self._outcomes):
            raise RuntimeError("act() twice without reward()")
        self._steps.append((raw, normalised, decision))

    def rewarded(self, rewards: Floats, done: Bools, alive: Bools) -> None:
        """Add the second half: rewards [E], environments that ended with this step [E], those that decided [E]."""
        if len(self._steps) != len(self._outcomes) + 1:
            raise RuntimeError("reward() without act()")
        if not np.isfinite(rewards[alive]).all():
            raise ValueError(f"non-finite reward at step {len(self)}: {rewards.tolist()}")
        self._outcomes.append((np.where(alive, rewards, 0.0), done | ~alive, alive))

    def cut_off(self, cut: Cut, values: Floats) -> None:
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


def gae(
    rewards: Floats, values: Floats, dones: Bools, last_value: Floats, gamma: float, lam: float
) -> tuple[Floats, Floats]:
    """Return advantages and returns (advantage + value), both [T, E].

    rewards, values, dones: [T, E]; `dones[t]`: step t was terminal, so nothing after it reaches step t. last_value:
    [E], value of the observation after step T-1; used only where `dones[T-1]` is False, in an episode that goes on.
    Rewards and values are in the same unit, and so are the results.
    """
    continues = 1.0 - dones.astype(np.float64)
    next_values = np.concatenate([values[1:], last_value[None]])
    deltas = rewards + gamma * continues * next_values - values
    advantages = np.empty_like(deltas)
    running = np.zeros_like(last_value)
    for step in reversed(range(len(deltas))):
        running = deltas[step] + gamma * lam * continues[step] * running
        advantages[step] = running
    return advantages, advantages + values


Arrays = dict[str, NDArray[Any]]


def of_steps(arrays: Arrays, valid: Bools) -> Arrays:
    """Return every valid step as a sequence of its own, [1, N, …] from [T, E, …]: where there is no memory."""
    return {name: array[valid][None] for name, array in arrays.items()}


def cut_sequences(arrays: Arrays, starts: Bools) -> tuple[Arrays, Ints, Bools]:
    """Cut columns [T, E, …] before each step in `starts` [T, E]; sequences [L, N, …], shorter ones padded with zeros.

    Returns also the column each sequence is of, [N], and whether it is that column's first, [N].
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
