"""One decision for every environment at once, head by head. Knows how to choose, not what is recorded or learnt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from workers.ppo.heads import Masks, joint_log_prob, masked_log_softmax, most_probable, pad_heads, sample
from workers.ppo.policy import RecurrentPolicy, State


@dataclass(frozen=True)
class Decision:
    """What was decided in one step, and what the update needs to know about it."""

    actions: NDArray[np.int64]  # [E, heads]
    masks: NDArray[np.bool_]  # [E, heads, widest head]
    log_probs: NDArray[np.float64]  # [E], joint over used heads
    values: NDArray[np.float64]  # [E], normalised
    state: State  # after the step


@torch.inference_mode()
def decide(
    policy: RecurrentPolicy,
    observation: NDArray[np.float32],
    state: State,
    masks: Masks,
    uniforms: NDArray[np.float64] | None,
) -> Decision:
    """Decide for normalised observation [E, width] with uniforms [E, heads]; without uniforms the most probable choice.

    Every mask is asked for with all earlier choices, so a later head may be masked by any earlier one.
    """
    sizes = policy.head_sizes
    device = policy.value_out.weight.device
    features, after = policy.features(torch.from_numpy(observation).to(device)[None], state)
    features = features[0]
    n_envs = len(observation)
    actions = np.zeros((n_envs, len(sizes)), dtype=np.int64)
    used_masks = np.zeros((n_envs, len(sizes), max(sizes)), dtype=np.bool_)
    flat = []
    for group in policy.groups:
        group_logits = group(features, torch.from_numpy(actions).to(device))
        flat.append(group_logits)
        columns = np.split(group_logits.cpu().numpy(), np.cumsum(group.sizes)[:-1], axis=1)
        for head, logits in zip(group.heads, columns, strict=True):
            mask = masks.mask(head, actions[:, :head])
            used_masks[:, head, : sizes[head]] = mask
            actions[:, head] = (
                most_probable(logits, mask) if uniforms is None else sample(logits, mask, uniforms[:, head])
            )
    taken = torch.from_numpy(actions).to(device)
    valid = torch.from_numpy(used_masks).to(device)
    log_probs = joint_log_prob(masked_log_softmax(pad_heads(torch.cat(flat, -1), sizes), valid), valid, taken)
    values = policy.values(features).double()
    return Decision(actions, used_masks, log_probs.cpu().numpy(), values.cpu().numpy(), after)
