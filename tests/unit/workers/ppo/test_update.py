"""The update: what stops it, what decides its order, what may never influence it, and what it says of itself."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
import torch
from support.ppo_batches import SIZES, fresh_policy, random_batch

from esper_ab.contracts.records import PPOUpdate
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import PPOSettings
from workers.actor_critic import ActorCritic, Batch
from workers.ppo.update import ppo_update, rule_of

SETTINGS = PPOSettings(minibatches=2, epochs=3, target_kl=10.0, lr=1e-3, entropy_coef=0.0)


def update(policy: ActorCritic, batch: Batch, rng: RngPath = RngPath(0), **changes: float) -> PPOUpdate:  # noqa: B008
    settings = msgspec.structs.replace(SETTINGS, **changes)
    return ppo_update(policy, batch, settings, rule_of(settings, 0, 1), rng)


def copied(policy: ActorCritic) -> dict[str, np.ndarray]:
    return {name: weight.copy() for name, weight in policy.weights.items()}


def test_use_of_heads_equals_a_plain_computation():
    policy, batch = fresh_policy(), random_batch(1)
    batch.masks[:, :, 1, 1:] = False  # the second head never has more than one valid choice
    with torch.no_grad():
        features, _ = policy.features(torch.from_numpy(batch.observations), torch.zeros(2, batch.valid.shape[1], 8))
        logits = policy.logits(features, torch.from_numpy(batch.actions)).double()
    for head, use in enumerate(update(policy, batch).heads.values()):
        shares = []
        for t, env in np.argwhere(batch.valid).tolist():
            allowed = np.flatnonzero(batch.masks[t, env, head])
            if len(allowed) > 1:
                p = torch.softmax(logits[t, env, head, allowed], 0)
                shares.append(-float((p * p.log()).sum()) / math.log(len(allowed)))
        assert use.learnable == pytest.approx(len(shares) / int(batch.valid.sum()))
        assert use.entropy == (pytest.approx(sum(shares) / len(shares), abs=1e-6) if shares else None)
        assert (use.learnable > 0) == (head != 1)


def test_a_better_action_becomes_more_probable_and_a_worse_one_less():
    policy, batch = fresh_policy(), random_batch()
    old = policy.evaluate(batch).log_probs
    batch.log_probs[batch.valid] = old
    update(policy, batch, lr=0.003)
    change = policy.evaluate(batch).log_probs - old
    assert float((change * batch.advantages[batch.valid]).mean()) > 0.01


def test_heads_that_no_step_used_keep_their_weights():
    policy, batch = fresh_policy(), random_batch()
    batch.masks[:, :, 2] = False
    before = copied(policy)
    update(policy, batch, entropy_coef=0.01)
    unmoved = {name for name, weight in policy.weights.items() if np.array_equal(weight, before[name])}
    assert unmoved == {name for name in before if name.startswith("actor.2.")}


def test_the_update_stops_before_the_step_that_starts_beyond_the_target_kl():
    policy, batch = fresh_policy(), random_batch()
    batch.log_probs[batch.valid] = policy.evaluate(batch).log_probs
    stops = {"epochs": 50, "minibatches": 1, "target_kl": 1e-3, "lr": 0.01}
    stopped = update(policy, batch, **stops)
    assert stopped.stopped_by_kl
    assert 1 <= stopped.epochs_done < 50
    assert policy.steps == stopped.epochs_done
    frozen = fresh_policy()
    batch.log_probs[batch.valid] += 1.0  # already beyond the target: not one step
    none = update(frozen, batch, **stops)
    assert (none.stopped_by_kl, none.epochs_done, none.grad_norm) == (True, 0, None)
    assert all(np.array_equal(weight, fresh_policy().weights[name]) for name, weight in frozen.weights.items())


def test_a_gradient_that_is_not_finite_is_reported_as_none_and_not_applied():
    policy, batch = fresh_policy(), random_batch()
    batch.returns[0, 0] = math.inf
    found = update(policy, batch)
    assert found.grad_norm is None
    assert found.value_loss is None
    assert not found.stopped_by_kl
    assert all(np.isfinite(weight).all() for weight in policy.weights.values())


def test_order_of_environments_comes_from_the_path_alone():
    def weights(rng: RngPath) -> list[list[float]]:
        policy = fresh_policy()
        update(policy, random_batch(), rng)
        return [weight.ravel().tolist() for weight in policy.weights.values()]

    first = weights(RngPath(0))
    torch.manual_seed(99)
    np.random.default_rng(0)
    assert weights(RngPath(0)) == first
    assert weights(RngPath(1)) != first


def test_an_environment_without_a_valid_step_takes_part_in_no_minibatch():
    batch = random_batch()
    batch.valid[:, 2] = False
    found = update(fresh_policy(), batch, minibatches=64, epochs=2, target_kl=100.0)
    assert found.epochs_done == 2
    assert found.policy_loss is not None


def test_entropy_coefficient_is_linear_and_then_constant():
    settings = PPOSettings(entropy_coef=0.1, entropy_coef_end=0.02)
    got = [rule_of(settings, episode, 5).entropy_coef for episode in (0, 2, 4, 9)]
    assert got == pytest.approx([0.1, 0.06, 0.02, 0.02])
    assert rule_of(settings, 0, 1).entropy_coef == 0.1


def test_the_explained_variance_is_that_of_the_returns_and_none_where_they_do_not_vary():
    batch = random_batch()
    batch.values[:] = batch.returns
    assert update(fresh_policy(), batch).explained_variance == 1.0
    batch.values[:] = 0.0
    assert update(fresh_policy(), batch).explained_variance == pytest.approx(0.0)
    batch.returns[:] = 2.0
    assert update(fresh_policy(), batch).explained_variance is None
    assert len(update(fresh_policy(), batch).heads) == len(SIZES)
