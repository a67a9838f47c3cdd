"""One decision for every environment at once, head by head."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from workers.arrays import Bools, Floats, Floats32, all_false, int_zeros
from workers.environments import Decisions, Masks
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
