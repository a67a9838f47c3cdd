"""The update's loss against a plain computation, number by number, and what may never influence it."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import PPOSettings
from workers.ppo.policy import ActorCritic, Shape
from workers.ppo.update import (
    Adam,
    Batch,
    clip_gradients,
    entropy_coefficient,
    evaluate,
    loss_terms,
    ppo_update,
)

SIZES = (3, 2, 4)
WIDTH, HIDDEN, STEPS, ENVS = 5, 8, 6, 4
SETTINGS = PPOSettings(minibatches=2, epochs=3, target_kl=10.0)


def fresh_policy() -> ActorCritic:
    policy = ActorCritic(Shape(observation_width=WIDTH, head_sizes=SIZES, hidden=HIDDEN), RngPath(0))
    with torch.no_grad():
        for group in policy.groups:
            group.logits.weight.mul_(100.0)  # far from uniform, so that every term matters
    return policy


def random_batch(key: int = 0) -> Batch:
    """Random numbers of every kind; environment 1 ended after step 2; some heads unused."""
    rng = np.random.default_rng(key)
    masks = rng.random((STEPS, ENVS, len(SIZES), max(SIZES))) < 0.6
    masks &= np.arange(max(SIZES)) < np.array(SIZES)[:, None]
    masks[..., 0, 0] = True
    actions = np.where(masks.any(-1), masks.argmax(-1), 0)
    valid = np.ones((STEPS, ENVS), dtype=bool)
    valid[3:, 1] = False
    numbers = {name: rng.standard_normal((STEPS, ENVS)) for name in ("values", "advantages", "returns")}
    return Batch(
        observations=torch.from_numpy(rng.standard_normal((STEPS, ENVS, WIDTH)).astype(np.float32)),
        actions=torch.from_numpy(actions),
        masks=torch.from_numpy(masks),
        log_probs=torch.from_numpy(-rng.random((STEPS, ENVS)) * 3),
        valid=torch.from_numpy(valid),
        **{name: torch.from_numpy(array) for name, array in numbers.items()},
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


def plain_loss(policy: ActorCritic, batch: Batch, entropy_coef: float) -> dict[str, float]:
    """PPO's loss in loops over environments, steps, heads and actions; shares no code with workers.ppo."""
    w = {name: tensor.double().numpy() for name, tensor in policy.state_dict().items()}
    sums = dict.fromkeys(("policy", "value", "entropy", "kl", "clipped"), 0.0)
    count = 0
    for env in range(batch.valid.shape[1]):
        h = c = np.zeros(HIDDEN)
        for t in range(STEPS):
            if not batch.valid[t, env]:
                break
            features, h, c = plain_step(w, batch.observations[t, env].double().numpy(), h, c)
            actions, new, entropy = batch.actions[t, env].numpy(), 0.0, 0.0
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


@pytest.mark.parametrize("key", range(3))
def test_loss_equals_a_plain_computation(key: int):
    policy, batch = fresh_policy(), random_batch(key)
    expected = plain_loss(policy, batch, 0.03)
    got = loss_terms(policy, batch, SETTINGS, 0.03)
    assert float(got.loss.detach()) == pytest.approx(expected["loss"], abs=1e-5)
    assert float(got.policy_loss) == pytest.approx(expected["policy"], abs=1e-5)
    assert float(got.value_loss) == pytest.approx(expected["value"], abs=1e-5)
    assert float(got.kl) == pytest.approx(expected["kl"], abs=1e-4)
    assert float(got.clip_fraction) == pytest.approx(expected["clipped"])


def test_use_of_heads_equals_a_plain_computation():
    policy, batch = fresh_policy(), random_batch(1)
    batch.masks[:, :, 1, 1:] = False  # the second head never has more than one valid choice
    with torch.no_grad():
        features, _ = policy.features(batch.observations, policy.initial_state(ENVS))
        logits = policy.logits(features, batch.actions).double()
    update = ppo_update(policy, torch.optim.SGD(policy.parameters(), lr=0.1), batch, SETTINGS, 0.0, RngPath(0))
    for head, use in enumerate(update.heads.values()):
        shares = []
        for t, env in batch.valid.nonzero().tolist():
            allowed = batch.masks[t, env, head].nonzero()[:, 0]
            if len(allowed) > 1:
                p = torch.softmax(logits[t, env, head, allowed], 0)
                shares.append(-float((p * p.log()).sum()) / math.log(len(allowed)))
        assert use.learnable == pytest.approx(len(shares) / int(batch.valid.sum()))
        assert use.entropy == (pytest.approx(sum(shares) / len(shares), abs=1e-6) if shares else None)
    assert [use.learnable > 0 for use in update.heads.values()] == [True, False, True]


def test_a_better_action_becomes_more_probable_and_a_worse_one_less():
    policy = fresh_policy()
    batch = random_batch()
    with torch.no_grad():
        old = evaluate(policy, batch).log_probs
    batch.log_probs[batch.valid] = old
    ppo_update(policy, torch.optim.SGD(policy.parameters(), lr=0.05), batch, SETTINGS, 0.0, RngPath(0))
    with torch.no_grad():
        change = evaluate(policy, batch).log_probs - old
    assert float((change * batch.advantages[batch.valid]).mean()) > 0.01


def test_heads_that_no_step_used_keep_their_weights():
    policy, batch = fresh_policy(), random_batch()
    batch.masks[:, :, 2] = False
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    ppo_update(policy, torch.optim.Adam(policy.parameters()), batch, SETTINGS, 0.01, RngPath(0))
    unmoved = {name for name, tensor in policy.state_dict().items() if torch.equal(tensor, before[name])}
    assert unmoved == {name for name in before if name.startswith("actor.2.")}


def test_the_update_stops_before_the_step_that_starts_beyond_the_target_kl():
    policy, batch = fresh_policy(), random_batch()
    with torch.no_grad():
        batch.log_probs[batch.valid] = evaluate(policy, batch).log_probs
    settings = PPOSettings(epochs=50, minibatches=1, target_kl=1e-3)
    update = ppo_update(policy, torch.optim.Adam(policy.parameters(), lr=0.01), batch, settings, 0.0, RngPath(0))
    assert update.stopped_by_kl
    assert 1 <= update.epochs_done < 50
    frozen = fresh_policy()
    batch.log_probs[batch.valid] += 1.0  # already beyond the target: not one step
    stopped = ppo_update(frozen, torch.optim.Adam(frozen.parameters()), batch, settings, 0.0, RngPath(0))
    assert (stopped.stopped_by_kl, stopped.epochs_done, stopped.grad_norm) == (True, 0, None)
    assert all(torch.equal(a, b) for a, b in zip(frozen.parameters(), fresh_policy().parameters(), strict=True))


def test_a_gradient_that_is_not_finite_is_reported_as_none_and_not_applied():
    policy, batch = fresh_policy(), random_batch()
    batch.returns[0, 0] = math.inf
    update = ppo_update(policy, torch.optim.Adam(policy.parameters()), batch, SETTINGS, 0.0, RngPath(0))
    assert update.grad_norm is None
    assert update.value_loss is None
    assert all(tensor.isfinite().all() for tensor in policy.parameters())


def test_a_batch_of_valid_steps_alone_gives_the_loss_and_gradient_of_the_general_case():
    """Where every step is valid nothing is picked; a batch with one more environment that has no valid step picks."""
    whole = random_batch()
    whole.valid[:] = True
    padded = Batch(**{name: t if t is None else torch.cat([t, t[:, :1]], 1) for name, t in vars(whole).items()})
    padded.valid[:, -1] = False
    results = []
    for batch in (whole, padded):
        policy = fresh_policy()
        terms = loss_terms(policy, batch, SETTINGS, 0.01)
        terms.loss.backward()
        results.append((float(terms.loss.detach()), [p.grad for p in policy.parameters()]))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    for mine, theirs in zip(results[0][1], results[1][1], strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("most", [0.1, 1e6])
def test_clipping_is_that_of_torch(most):
    rng = np.random.default_rng(3)
    grads = [torch.from_numpy(rng.standard_normal(shape)).float() for shape in ((3, 4), (7,), (2, 2, 2))]
    twins = [torch.nn.Parameter(torch.zeros_like(grad)) for grad in grads]
    for twin, grad in zip(twins, grads, strict=True):
        twin.grad = grad.clone()
    assert clip_gradients(grads, most) == float(torch.nn.utils.clip_grad_norm_(twins, most))
    assert all(torch.equal(grad, twin.grad) for grad, twin in zip(grads, twins, strict=True))


def test_gradient_norm_is_clipped():
    policy, batch = fresh_policy(), random_batch()
    settings = PPOSettings(epochs=1, minibatches=1, target_kl=10.0, max_grad_norm=1e-3)
    before = torch.cat([p.detach().clone().flatten() for p in policy.parameters()])
    update = ppo_update(policy, torch.optim.SGD(policy.parameters(), lr=1.0), batch, settings, 0.0, RngPath(0))
    after = torch.cat([p.detach().flatten() for p in policy.parameters()])
    assert update.grad_norm is not None
    assert update.grad_norm > 1e-2
    assert float((after - before).norm()) == pytest.approx(1e-3, rel=1e-3)


def test_order_of_environments_comes_from_the_path_alone():
    def weights(rng: RngPath) -> list[list[float]]:
        policy = fresh_policy()
        ppo_update(policy, torch.optim.Adam(policy.parameters()), random_batch(), SETTINGS, 0.0, rng)
        return [tensor.flatten().tolist() for tensor in policy.parameters()]

    first = weights(RngPath(0))
    torch.manual_seed(99)
    np.random.default_rng(0)
    assert weights(RngPath(0)) == first
    assert weights(RngPath(1)) != first


def test_an_environment_without_a_valid_step_takes_part_in_no_minibatch():
    batch = random_batch()
    batch.valid[:, 2] = False
    settings = PPOSettings(minibatches=64, epochs=2, target_kl=100.0)
    policy = fresh_policy()
    update = ppo_update(policy, torch.optim.Adam(policy.parameters()), batch, settings, 0.0, RngPath(0))
    assert update.epochs_done == 2
    assert update.policy_loss is not None


def test_entropy_coefficient_is_linear_and_then_constant():
    settings = PPOSettings(entropy_coef=0.1, entropy_coef_end=0.02)
    got = [entropy_coefficient(settings, episode, 5) for episode in (0, 2, 4, 9)]
    assert got == pytest.approx([0.1, 0.06, 0.02, 0.02])
    assert entropy_coefficient(settings, 0, 1) == 0.1


LR, EPS = 0.03, 1e-5
SHAPES = ((3, 5), (5,), (1, 2, 3), ())


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(3)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def give_gradients(owner: list[nn.Parameter], step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for parameter in owner:
        parameter.grad = torch.randn(parameter.shape, generator=generator) * 10.0 ** (step % 5 - 2)


def same(mine: list[nn.Parameter], theirs: list[nn.Parameter]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


@pytest.mark.parametrize("steps", [0, 7])
def test_it_goes_on_from_its_own_state_and_from_torch_s(steps: int) -> None:
    first, theirs = parameters(), parameters()
    adam, reference = Adam(first, LR, EPS), torch.optim.Adam(theirs, lr=LR, eps=EPS, fused=True)
    for step in range(steps):
        for owner, optimiser in ((first, adam), (theirs, reference)):
            give_gradients(owner, step)
            optimiser.step()
    for state in (adam.state(), copy.deepcopy(reference.state_dict())):
        mine = [nn.Parameter(parameter.detach().clone()) for parameter in first]
        again = Adam(mine, LR, EPS)
        again.load(state)
        give_gradients(mine, steps)
        again.step()
        expected = [nn.Parameter(parameter.detach().clone()) for parameter in theirs]
        beside = torch.optim.Adam(expected, lr=LR, eps=EPS, fused=True)
        beside.load_state_dict(copy.deepcopy(reference.state_dict()))
        give_gradients(expected, steps)
        beside.step()
        assert same(mine, expected)


def test_a_parameter_without_a_gradient_moves_nothing() -> None:
    """The others' gradients are never taken for its own."""
    mine, before = parameters(), parameters()
    give_gradients(mine, 0)
    mine[1].grad = None
    with pytest.raises(AssertionError, match="without a gradient"):
        Adam(mine, LR, EPS).step()
    assert same(mine, before)


def test_a_state_of_other_parameters_is_refused() -> None:
    mine = parameters()
    adam = Adam(mine[:2], LR, EPS)
    give_gradients(mine, 0)
    adam.step()
    with pytest.raises(LookupError, match="2 parameters for 4"):
        Adam(mine, LR, EPS).load(adam.state())
