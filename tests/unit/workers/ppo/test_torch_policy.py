"""Decisions of the reference policy, and its limits: the target KL and the clip range."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Batch, Shape, UpdateRule
from workers.ppo.torch_policy import TorchPolicy

WIDTH = 3
ENVS = 4
HEADS = Shape(observation_width=WIDTH, head_sizes=(2, 3), hidden=4, memory="none")
PLANE = Shape(observation_width=WIDTH, head_sizes=(), dimensions=2, hidden=4, memory="none")
RULE = UpdateRule(clip=0.2, value_coef=0.5, entropy_coef=0.0, max_grad_norm=0.5, lr=0.01, target_kl=1e9)


class AllValid:
    def mask(self, head: int, choices: np.ndarray) -> np.ndarray:
        return np.ones((len(choices), HEADS.head_sizes[head]), dtype=bool)


def observations() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((ENVS, WIDTH)).astype(np.float32)


def own_batch(policy: TorchPolicy) -> Batch:
    """One step of each environment, decided by this policy, so that every ratio is 1."""
    memory = policy.initial_memory(ENVS)
    decision = policy.decide(observations(), memory, None, np.full((ENVS, 2), 0.5))
    batch = Batch(
        observations=observations()[None],
        actions=decision.actions[None],
        masks=None,
        log_probs=decision.log_probs[None],
        values=decision.values[None],
        advantages=np.linspace(-1.0, 1.0, ENVS)[None],
        returns=np.ones((1, ENVS)),
        valid=np.ones((1, ENVS), dtype=bool),
    )
    return replace(batch, log_probs=policy.evaluate(batch).log_probs[None])


def test_masks_are_stored_only_if_a_choice_can_be_invalid():
    policy = TorchPolicy(HEADS, RngPath(0))
    uniforms = np.full((ENVS, 2), 0.5)
    free_batch, masked_batch = (
        policy.decide(observations(), policy.initial_memory(ENVS), masks, uniforms) for masks in (None, AllValid())
    )
    assert free_batch.masks is None
    assert masked_batch.masks.sum(-1).tolist() == [[2, 3]] * ENVS
    assert free_batch.actions.tolist() == masked_batch.actions.tolist()


def test_continuous_decisions_have_the_spread_of_their_dimension():
    """About the mean, which is the greedy decision: quantiles of a normal, and its density."""
    policy = TorchPolicy(PLANE, RngPath(0))
    policy.weights["actor.0.log_std"][:] = (0.5, -1.0)
    uniforms = np.array([[0.1, 0.9], [0.5, 0.2], [0.7, 0.3], [0.9, 0.6]])
    means = policy.decide(observations(), policy.initial_memory(ENVS), None, None).actions
    decisions = policy.decide(observations(), policy.initial_memory(ENVS), None, uniforms)
    distribution = stats.norm(means, np.exp([0.5, -1.0]))
    np.testing.assert_allclose(decisions.actions, distribution.ppf(uniforms), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        decisions.log_probs, distribution.logpdf(decisions.actions).sum(-1), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("memory", ["none", "lstm"])
@pytest.mark.parametrize("trunk", ["shared", "separate"])
def test_with_separate_trunks_the_value_loss_does_not_move_the_actor(trunk: str, memory: str):
    policy = TorchPolicy(replace(HEADS, trunk=trunk, memory=memory), RngPath(0))
    batch = own_batch(policy)
    batch.advantages[:] = 0.0  # only the value has something to learn
    weights_before = {name: weight.copy() for name, weight in policy.weights.items()}
    assert policy.learn(batch, np.arange(ENVS), RULE).stepped
    moved_names = {name for name, weight in policy.weights.items() if not np.array_equal(weight, weights_before[name])}
    if trunk == "separate":
        assert {name.split(".")[0] for name in moved_names} == {"critic_trunk", "critic", "value_out"}
    else:
        assert "encoder.0.weight" in moved_names


@pytest.mark.parametrize("layer_norm", [True, False])
def test_a_network_of_rectified_units_equals_a_plain_computation(layer_norm: bool):
    policy = TorchPolicy(replace(PLANE, activation="relu", layer_norm=layer_norm), RngPath(0))
    w = {name: weight.astype(np.float64) for name, weight in policy.weights.items()}
    hidden_layer = observations() @ w["encoder.0.weight"].T
    if layer_norm:
        centred_layer = hidden_layer - hidden_layer.mean(1, keepdims=True)
        hidden_layer = centred_layer / np.sqrt(centred_layer.var(1, keepdims=True) + 1e-5)
    features = np.maximum(hidden_layer, 0.0)
    decision = policy.decide(observations(), policy.initial_memory(ENVS), None, None)
    means = np.maximum(features @ w["actor.0.inner.weight"].T, 0.0) @ w["actor.0.means.weight"].T
    values = np.maximum(features @ w["critic.0.weight"].T, 0.0) @ w["value_out.weight"].T
    assert decision.actions == pytest.approx(means, abs=1e-6)
    assert decision.values == pytest.approx(values[:, 0], abs=1e-6)


def test_a_minibatch_beyond_the_target_kl_is_skipped():
    batch = own_batch(TorchPolicy(HEADS, RngPath(0)))
    batch.log_probs[:] += np.linspace(-0.5, 0.5, ENVS)
    all_sequences = np.arange(ENVS)
    kl = TorchPolicy(HEADS, RngPath(0)).learn(batch, all_sequences, RULE).kl
    assert kl > 0.0
    for target, is_stepped in ((kl, True), (np.nextafter(kl, 0.0), False)):
        learning_step = TorchPolicy(HEADS, RngPath(0)).learn(
            batch, all_sequences, replace(RULE, target_kl=float(target))
        )
        assert (learning_step.kl, learning_step.stepped) == (kl, is_stepped)


def test_a_ratio_on_the_edge_of_the_clip_range_is_not_clipped():
    policy = TorchPolicy(HEADS, RngPath(0))
    batch = own_batch(policy)
    parts = {name: torch.from_numpy(part) for name, part in vars(batch).items() if part is not None}
    terms = policy.loss(parts, replace(RULE, clip=0.0))
    assert float(terms["ratio_max"]) == 1.0
    assert float(terms["clip_fraction"]) == 0.0
