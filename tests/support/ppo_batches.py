"""A small policy of three heads, a batch of random numbers for it, and PPO's loss in plain loops."""

from __future__ import annotations

import math

import numpy as np

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Batch, Shape
from workers.ppo.torch_policy import TorchPolicy

SIZES = (3, 2, 4)
WIDTH, HIDDEN, STEPS, ENVS = 5, 8, 6, 4


def fresh_policy() -> TorchPolicy:
    policy = TorchPolicy(Shape(observation_width=WIDTH, head_sizes=SIZES, hidden=HIDDEN), RngPath(0))
    for group in range(len(SIZES)):
        policy.weights[f"actor.{group}.logits.weight"] *= 100.0  # far from uniform, so that every term matters
    return policy


def random_batch(key: int = 0) -> Batch:
    """Random numbers of every kind; environment 1 ended after step 2; some heads unused."""
    rng = np.random.default_rng(key)
    masks = rng.random((STEPS, ENVS, len(SIZES), max(SIZES))) < 0.6
    masks &= np.arange(max(SIZES)) < np.array(SIZES)[:, None]
    masks[..., 0, 0] = True
    valid = np.ones((STEPS, ENVS), dtype=bool)
    valid[3:, 1] = False
    numbers = {name: rng.standard_normal((STEPS, ENVS)) for name in ("values", "advantages", "returns")}
    return Batch(
        observations=rng.standard_normal((STEPS, ENVS, WIDTH)).astype(np.float32),
        actions=np.where(masks.any(-1), masks.argmax(-1), 0), masks=masks,
        log_probs=-rng.random((STEPS, ENVS)) * 3, valid=valid, **numbers,
    )


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def layer_norm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5)


def plain_step(
    w: dict[str, np.ndarray], x: np.ndarray, h: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The trunk for one observation of one environment, from the textbook equations of the LSTM: features, h, c."""
    encoded = np.tanh(layer_norm(w["encoder.0.weight"] @ x + w["encoder.0.bias"]))
    gates = w["lstm.weight_ih_l0"] @ encoded + w["lstm.bias_ih_l0"] + w["lstm.weight_hh_l0"] @ h + w["lstm.bias_hh_l0"]
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return layer_norm(h), h, c


def plain_logits(w: dict[str, np.ndarray], head: int, features: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Logits of one head: every head is its own group for three heads."""
    inner = w[f"actor.{head}.inner.weight"] @ features + w[f"actor.{head}.inner.bias"]
    for earlier in range(head):
        inner = inner + w[f"actor.{head}.choices.{earlier}.weight"][actions[earlier]]
    return w[f"actor.{head}.logits.weight"] @ np.tanh(inner) + w[f"actor.{head}.logits.bias"]


def plain_loss(policy: TorchPolicy, batch: Batch, entropy_coef: float) -> dict[str, float]:
    """PPO's loss in loops over environments, steps, heads and actions; shares no code with workers.ppo."""
    w = {name: weight.astype(np.float64) for name, weight in policy.weights.items()}
    sums = dict.fromkeys(("policy", "value", "entropy", "kl", "clipped"), 0.0)
    count = 0
    for env in range(batch.valid.shape[1]):
        h = c = np.zeros(HIDDEN)
        for t in range(STEPS):
            if not batch.valid[t, env]:
                break
            features, h, c = plain_step(w, batch.observations[t, env].astype(np.float64), h, c)
            actions, new, entropy = batch.actions[t, env], 0.0, 0.0
            for head, size in enumerate(SIZES):
                logits = plain_logits(w, head, features, actions)
                allowed = [a for a in range(size) if batch.masks[t, env, head, a]]
                if allowed:
                    z = sum(math.exp(logits[a]) for a in allowed)
                    p = {a: math.exp(logits[a]) / z for a in allowed}
                    new += math.log(p[int(actions[head])])
                    entropy -= sum(q * math.log(q) for q in p.values())
            critic = np.tanh(w["critic.0.weight"] @ features + w["critic.0.bias"])
            value = (w["value_out.weight"] @ critic + w["value_out.bias"]).item()
            ratio = math.exp(new - float(batch.log_probs[t, env]))
            advantage = float(batch.advantages[t, env])
            sums["policy"] -= min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)
            sums["value"] += 0.5 * (value - float(batch.returns[t, env])) ** 2
            sums["entropy"] += entropy
            sums["kl"] += ratio - 1.0 - math.log(ratio)
            sums["clipped"] += abs(ratio - 1.0) > 0.2
            count += 1
    means = {name: total / count for name, total in sums.items()}
    return {**means, "loss": means["policy"] + 0.5 * means["value"] - entropy_coef * means["entropy"]}
