"""The update: its loss by a plain computation, its step by torch's optimiser, and its stops."""

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn

from esper_ab.contracts.records import PPOUpdate
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import PPOSettings
from workers.actor_critic import ActorCritic, Batch, Learnt, Shape, UpdateRule
from workers.ppo.torch_policy import TorchPolicy
from workers.ppo.update import ppo_update, rule_of

SIZES = (3, 2, 4)
WIDTH = 5
HIDDEN = 8
STEPS = 6
ENVS = 4
SHAPE = Shape(observation_width=WIDTH, head_sizes=SIZES, hidden=HIDDEN)
SETTINGS = PPOSettings(minibatches=2, epochs=3, target_kl=10.0, lr=1e-3, entropy_coef=0.0)
RULE = UpdateRule(clip=0.2, value_coef=0.5, entropy_coef=0.03, max_grad_norm=0.5, lr=0.03, target_kl=1e9)


def fresh_policy() -> TorchPolicy:
    policy = TorchPolicy(SHAPE, RngPath(0))
    for group in range(len(SIZES)):
        policy.weights[f"actor.{group}.logits.weight"] *= 100.0  # far from uniform, so that every term matters
    return policy


def random_batch(key: int = 0) -> Batch:
    """Random numbers of every kind; environment 1 ended after step 2; some heads unused."""
    rng = np.random.default_rng(key)
    masks = rng.random((STEPS, ENVS, len(SIZES), max(SIZES))) < 0.6
    masks &= np.arange(max(SIZES)) < np.array(SIZES)[:, None]
    masks[..., 0, 0] = True
    valid_mask = np.ones((STEPS, ENVS), dtype=bool)
    valid_mask[3:, 1] = False
    numbers = {name: rng.standard_normal((STEPS, ENVS)) for name in ("values", "advantages", "returns")}
    return Batch(
        observations=rng.standard_normal((STEPS, ENVS, WIDTH)).astype(np.float32),
        actions=np.where(masks.any(-1), masks.argmax(-1), 0),
        masks=masks,
        log_probs=-rng.random((STEPS, ENVS)) * 3,
        valid=valid_mask,
        **numbers,
    )


def layer_norm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5)


def plain_step(w: dict[str, np.ndarray], x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
    """The trunk for one observation of one environment, from the textbook equations of the LSTM: features, h, c."""
    encoded_observation = np.tanh(layer_norm(w["encoder.0.weight"] @ x + w["encoder.0.bias"]))
    gates = (
        w["lstm.weight_ih_l0"] @ encoded_observation
        + w["lstm.bias_ih_l0"]
        + w["lstm.weight_hh_l0"] @ h
        + w["lstm.bias_hh_l0"]
    )
    i, f, g, o = np.split(gates, 4)
    c = expit(f) * c + expit(i) * np.tanh(g)
    h = expit(o) * np.tanh(c)
    return layer_norm(h), h, c


def plain_logits(w: dict[str, np.ndarray], head: int, features: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Logits of one head: every head is its own group for three heads."""
    inner_layer = w[f"actor.{head}.inner.weight"] @ features + w[f"actor.{head}.inner.bias"]
    for earlier_head in range(head):
        inner_layer = inner_layer + w[f"actor.{head}.choices.{earlier_head}.weight"][actions[earlier_head]]
    return w[f"actor.{head}.logits.weight"] @ np.tanh(inner_layer) + w[f"actor.{head}.logits.bias"]


def plain_loss(policy: TorchPolicy, batch: Batch, entropy_coef: float) -> dict[str, float]:
    """PPO's loss in loops over environments, steps, heads and actions; shares no code with workers.ppo."""
    w = {name: weight.astype(np.float64) for name, weight in policy.weights.items()}
    sums = dict.fromkeys(("policy_loss", "value_loss", "entropy", "kl", "clip_fraction"), 0.0)
    count = 0
    for env in range(batch.valid.shape[1]):
        h = c = np.zeros(HIDDEN)
        for t in range(STEPS):
            if not batch.valid[t, env]:
                break
            features, h, c = plain_step(w, batch.observations[t, env].astype(np.float64), h, c)
            actions = batch.actions[t, env]
            log_prob = 0.0
            entropy = 0.0
            for head, size in enumerate(SIZES):
                logits = plain_logits(w, head, features, actions)
                allowed_actions = [a for a in range(size) if batch.masks[t, env, head, a]]
                if allowed_actions:
                    z = sum(math.exp(logits[a]) for a in allowed_actions)
                    p = {a: math.exp(logits[a]) / z for a in allowed_actions}
                    log_prob += math.log(p[int(actions[head])])
                    entropy -= sum(q * math.log(q) for q in p.values())
            critic = np.tanh(w["critic.0.weight"] @ features + w["critic.0.bias"])
            value = (w["value_out.weight"] @ critic + w["value_out.bias"]).item()
            ratio = math.exp(log_prob - float(batch.log_probs[t, env]))
            advantage = float(batch.advantages[t, env])
            sums["policy_loss"] -= min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)
            sums["value_loss"] += 0.5 * (value - float(batch.returns[t, env])) ** 2
            sums["entropy"] += entropy
            sums["kl"] += ratio - 1.0 - math.log(ratio)
            sums["clip_fraction"] += abs(ratio - 1.0) > 0.2
            count += 1
    means = {name: total / count for name, total in sums.items()}
    entropy = means.pop("entropy")
    return {**means, "loss": means["policy_loss"] + 0.5 * means["value_loss"] - entropy_coef * entropy}


def tensors(batch: Batch) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(part) for name, part in vars(batch).items() if part is not None}


@pytest.mark.parametrize("key", range(3))
def test_the_ppo_loss_equals_a_plain_computation(key: int):
    policy = fresh_policy()
    batch = random_batch(key)
    terms = policy.loss(tensors(batch), RULE)
    expected = plain_loss(policy, batch, RULE.entropy_coef)
    assert {name: float(terms[name].detach()) for name in expected} == pytest.approx(expected, abs=1e-5)


def test_the_clipped_value_loss_is_the_larger_of_two_squared_errors():
    """By hand, with a clip of 0.2: per step the value, the value when acting, the return, and the error that counts.

    1.5, 1.0, 2.0: clipped to 1.2, whose error -0.8 is the larger one; no gradient
    1.5, 1.0, 0.0: the value's own error 1.5 is larger than 1.2
    1.1, 1.0, 3.0: within the clip, both errors are -1.9
    0.5, 1.0, 0.0: clipped to 0.8, error 0.8; no gradient
    """
    policy = TorchPolicy(Shape(observation_width=1, head_sizes=(2,), hidden=4, memory="none"), RngPath(0))
    values = torch.tensor([1.5, 1.5, 1.1, 0.5], dtype=torch.float64, requires_grad=True)
    policy._values = lambda features: values
    zeros = np.zeros((1, 4))
    batch = Batch(
        observations=np.zeros((1, 4, 1), dtype=np.float32),
        actions=np.zeros((1, 4, 1), dtype=np.int64),
        log_probs=zeros,
        values=np.ones((1, 4)),
        advantages=zeros,
        returns=np.array([[2.0, 0.0, 3.0, 0.0]]),
        valid=np.ones((1, 4), dtype=bool),
    )
    for value_clip, errors, flows in (
        (0.2, [-0.8, 1.5, -1.9, 0.8], [0, 1, 1, 0]),
        (0.0, [-0.5, 1.5, -1.9, 0.5], [1, 1, 1, 1]),
    ):
        terms = policy.loss(tensors(batch), replace(RULE, value_clip=value_clip, entropy_coef=0.0))
        assert float(terms["value_loss"]) == pytest.approx(0.5 * np.mean(np.square(errors)))
        (gradient,) = torch.autograd.grad(terms["loss"], values)
        assert gradient.tolist() == pytest.approx([0.5 * e * f / 4 for e, f in zip(errors, flows, strict=True)])


@pytest.mark.parametrize("max_norm", [1e-3, 1e6])
def test_learning_equals_adam_with_clipped_gradients(max_norm: float):
    """The state of torch's optimiser is laid out alike, and the other way round."""
    rule = replace(RULE, max_grad_norm=max_norm)
    policy = fresh_policy()
    batch = random_batch()
    sequences = np.array([0, 3, 1])
    for _ in range(3):
        parameters = [nn.Parameter(torch.from_numpy(weight.copy())) for weight in policy.weights.values()]
        twin = torch.optim.Adam(parameters, lr=rule.lr, eps=rule.adam_eps, fused=True)
        if policy.steps:
            state = policy.state()["optimiser"]["state"]
            moments = {i: {k: torch.from_numpy(v.copy()) for k, v in state[i].items()} for i in state}
            twin.load_state_dict({**twin.state_dict(), "state": moments})
        chosen_parts = {name: part[:, sequences] for name, part in tensors(batch).items()}
        grads = torch.autograd.grad(policy.loss(chosen_parts, rule)["loss"], list(policy._tensors.values()))
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = grad
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, max_norm))
        twin.step()
        learning_step = policy.learn(batch, sequences, rule)
        assert learning_step.stepped
        assert learning_step.grad_norm == pytest.approx(norm)
        for own_weight, torch_weight in zip(policy.weights.values(), parameters, strict=True):
            np.testing.assert_allclose(own_weight, torch_weight.detach().numpy(), rtol=1e-5, atol=1e-7)
    assert policy.steps == 3


def test_features_of_single_steps_equal_those_of_a_sequence():
    policy = TorchPolicy(SHAPE, RngPath(0))
    memory = torch.zeros(2, ENVS, HIDDEN)
    observations = torch.randn(STEPS, ENVS, WIDTH, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole = policy.features(observations, memory)
        for step, observation in enumerate(observations):
            features = policy.features(observation[None], memory)
            memory = features.memory
            torch.testing.assert_close(features.actor[0], whole.actor[step], rtol=0, atol=1e-5)
    torch.testing.assert_close(memory, whole.memory)


def test_computing_values_does_not_change_the_memory():
    policy = fresh_policy()
    memory = np.zeros((2, ENVS, HIDDEN), dtype=np.float32)
    observations = np.ones((ENVS, WIDTH), dtype=np.float32)
    values = policy.values(observations, memory)
    assert not memory.any()

    class AllValid:
        def mask(self, head: int, choices: np.ndarray) -> np.ndarray:
            return np.ones((ENVS, SIZES[head]), dtype=bool)

    assert policy.decide(observations, memory, AllValid(), None).values.tolist() == values.tolist()
    assert memory.all()


def update(policy: ActorCritic, batch: Batch, rng: RngPath = RngPath(0), **changes: float) -> PPOUpdate:  # noqa: B008
    settings = msgspec.structs.replace(SETTINGS, **changes)
    return ppo_update(policy, batch, settings, rule_of(settings, 0, 1), rng)


def test_the_reported_use_of_heads_equals_a_plain_computation():
    policy = fresh_policy()
    batch = random_batch(1)
    batch.masks[:, :, 1, 1:] = False  # the second head never has more than one valid choice
    with torch.no_grad():
        features = policy.features(torch.from_numpy(batch.observations), torch.zeros(2, batch.valid.shape[1], 8))
        logits = policy.logits(features.actor, torch.from_numpy(batch.actions)).double()
    heads = update(policy, batch).heads.values()
    assert len(heads) == len(SIZES)
    for head, use in enumerate(heads):
        shares = []
        for t, env in np.argwhere(batch.valid).tolist():
            allowed_actions = np.flatnonzero(batch.masks[t, env, head])
            if len(allowed_actions) > 1:
                p = torch.softmax(logits[t, env, head, allowed_actions], 0)
                shares.append(-float((p * p.log()).sum()) / math.log(len(allowed_actions)))
        assert use.learnable == pytest.approx(len(shares) / int(batch.valid.sum()))
        assert use.entropy == (pytest.approx(sum(shares) / len(shares), abs=1e-6) if shares else None)
        assert (use.learnable > 0) == (head != 1)


def test_unused_heads_keep_their_weights():
    policy = fresh_policy()
    batch = random_batch()
    batch.masks[:, :, 2] = False
    update(policy, batch, entropy_coef=0.01)
    unchanged_weights = {
        name for name, weight in fresh_policy().weights.items() if np.array_equal(weight, policy.weights[name])
    }
    assert unchanged_weights == {name for name in policy.weights if name.startswith("actor.2.")}


def test_the_update_stops_when_the_target_kl_is_exceeded():
    policy = fresh_policy()
    batch = random_batch()
    batch.log_probs[batch.valid] = policy.evaluate(batch).log_probs
    stops = {"epochs": 50, "minibatches": 1, "target_kl": 1e-3, "lr": 0.01}
    stopped = update(policy, batch, **stops)
    assert stopped.stopped_by_kl
    assert 1 <= stopped.epochs_done < 50
    assert policy.steps == stopped.epochs_done
    frozen_policy = fresh_policy()
    batch.log_probs[batch.valid] += 1.0  # already beyond the target: not one step
    no_step = update(frozen_policy, batch, **stops)
    assert (no_step.stopped_by_kl, no_step.epochs_done, no_step.grad_norm) == (True, 0, None)
    assert all(np.array_equal(weight, fresh_policy().weights[name]) for name, weight in frozen_policy.weights.items())


def test_a_non_finite_gradient_is_not_applied():
    policy = fresh_policy()
    batch = random_batch()
    batch.returns[0, 0] = math.inf
    diagnostics = update(policy, batch)
    assert (diagnostics.grad_norm, diagnostics.value_loss, diagnostics.stopped_by_kl) == (None, None, False)
    assert all(np.isfinite(weight).all() for weight in policy.weights.values())


def test_the_order_of_environments_in_minibatches_depends_only_on_the_rng_path():
    def weights(rng_seed: int) -> list[list[float]]:
        policy = fresh_policy()
        update(policy, random_batch(), RngPath(rng_seed))
        return [weight.ravel().tolist() for weight in policy.weights.values()]

    weights_of_seed_0 = weights(0)
    torch.manual_seed(99)
    assert weights(0) == weights_of_seed_0
    assert weights(1) != weights_of_seed_0


def test_environments_without_a_valid_step_are_not_in_minibatches():
    batch = random_batch()
    batch.valid[:, 2] = False
    diagnostics = update(fresh_policy(), batch, minibatches=64, epochs=2, target_kl=100.0)
    assert diagnostics.epochs_done == 2
    assert diagnostics.policy_loss is not None


class SeenAdvantages(TorchPolicy):
    """Notes the advantages of every minibatch."""

    def __init__(self) -> None:
        super().__init__(SHAPE, RngPath(0))
        self.advantages: list[np.ndarray] = []

    def learn(self, batch: Batch, sequences: np.ndarray, rule: UpdateRule) -> Learnt:
        self.advantages.append(batch.advantages[:, sequences][batch.valid[:, sequences]])
        return super().learn(batch, sequences, rule)


def test_advantages_may_be_normalised_over_each_minibatch():
    """Each has mean 0 and SD 1; over the batch, or not at all, they are what the agent has computed."""
    moments = {}
    for normalise in ("batch", "minibatch", "none"):
        policy = SeenAdvantages()
        update(policy, random_batch(), normalise_advantages=normalise, epochs=2)
        moments[normalise] = [(part.mean(), part.std()) for part in policy.advantages]
    assert len(moments["batch"]) == 4
    assert moments["none"] == moments["batch"]
    assert np.array(moments["minibatch"]) == pytest.approx(np.tile([0.0, 1.0], (4, 1)), abs=1e-12)
    assert np.abs(np.array(moments["batch"]) - [0.0, 1.0]).max() > 0.05


def test_equal_advantages_of_a_minibatch_count_as_none():
    policy = SeenAdvantages()
    batch = random_batch()
    batch.advantages[:] = 0.1
    update(policy, batch, normalise_advantages="minibatch")
    assert not any(part.any() for part in policy.advantages)


def test_learning_rate_and_entropy_coefficient_reach_their_final_values():
    settings = PPOSettings(lr=4.0, lr_end=0.25, entropy_coef=0.1, entropy_coef_end=0.02)
    rules = [rule_of(settings, episode, 4) for episode in range(6)]
    assert [rule.lr for rule in rules] == [4.0, 3.0, 2.0, 1.0, 1.0, 1.0]
    rules = [rule_of(settings, episode, 5) for episode in (0, 2, 4, 9)]
    assert [rule.entropy_coef for rule in rules] == pytest.approx([0.1, 0.06, 0.02, 0.02])
    assert rule_of(settings, 0, 1).entropy_coef == 0.1
    assert [rule_of(PPOSettings(lr=0.5, lr_end=0.0), episode, 3).lr for episode in range(3)] == [0.5, 0.25, 0.0]


def test_the_explained_variance_is_none_for_constant_returns():
    batch = random_batch()
    batch.values[:] = batch.returns
    assert update(fresh_policy(), batch).explained_variance == 1.0
    batch.values[:] = 0.0
    assert update(fresh_policy(), batch).explained_variance == pytest.approx(0.0)
    batch.returns[:] = 2.0
    assert update(fresh_policy(), batch).explained_variance is None
