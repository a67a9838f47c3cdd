"""Torch's policy: its loss against a plain computation, number by number; its step is that of torch's optimiser."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.ppo_batches import ENVS, HIDDEN, SIZES, WIDTH, fresh_policy, plain_loss, random_batch
from torch import nn

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Batch, Shape, UpdateRule
from workers.ppo.torch_policy import ADAM_EPS, TorchPolicy

RULE = UpdateRule(clip=0.2, value_coef=0.5, entropy_coef=0.03, max_grad_norm=0.5, lr=0.03, target_kl=1e9)


def tensors(batch: Batch) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(part) for name, part in vars(batch).items() if part is not None}


@pytest.mark.parametrize("key", range(3))
def test_loss_equals_a_plain_computation(key: int):
    policy, batch = fresh_policy(), random_batch(key)
    expected = plain_loss(policy, batch, RULE.entropy_coef)
    got = policy.loss(tensors(batch), RULE)
    assert float(got["loss"].detach()) == pytest.approx(expected["loss"], abs=1e-5)
    assert float(got["policy_loss"]) == pytest.approx(expected["policy"], abs=1e-5)
    assert float(got["value_loss"]) == pytest.approx(expected["value"], abs=1e-5)
    assert float(got["kl"]) == pytest.approx(expected["kl"], abs=1e-4)
    assert float(got["clip_fraction"]) == pytest.approx(expected["clipped"])


@pytest.mark.parametrize("most", [1e-3, 1e6])
def test_it_learns_by_gradients_that_are_clipped_and_torch_s_adam_from_any_state_on(most: float):
    """The state of torch's optimiser is laid out alike, and the other way round."""
    rule = UpdateRule(**{**vars(RULE), "max_grad_norm": most})
    policy, batch, sequences = fresh_policy(), random_batch(), np.array([0, 3, 1])
    for _ in range(3):
        parameters = [nn.Parameter(torch.from_numpy(weight.copy())) for weight in policy.weights.values()]
        twin = torch.optim.Adam(parameters, lr=rule.lr, eps=ADAM_EPS, fused=True)
        if policy.steps:
            state = policy.state()["optimiser"]["state"]
            moments = {i: {k: torch.from_numpy(v.copy()) for k, v in state[i].items()} for i in state}
            twin.load_state_dict({**twin.state_dict(), "state": moments})
        chosen = {name: part[:, sequences] for name, part in tensors(batch).items()}
        grads = torch.autograd.grad(policy.loss(chosen, rule)["loss"], list(policy._tensors.values()))
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = grad
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, most))
        twin.step()
        learnt = policy.learn(batch, sequences, rule)
        assert learnt.stepped
        assert learnt.grad_norm == pytest.approx(norm)
        for mine, theirs in zip(policy.weights.values(), parameters, strict=True):
            np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=1e-5, atol=1e-7)
    assert policy.steps == 3


def test_steps_and_sequence_agree():
    shape = Shape(observation_width=10, head_sizes=(6, 3, 7, 5), hidden=16)
    policy, memory = TorchPolicy(shape, RngPath(0)), torch.zeros(2, 3, 16)
    observations = torch.randn(7, 3, 10, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole, after = policy.features(observations, memory)
        for step, observation in enumerate(observations):
            features, memory = policy.features(observation[None], memory)
            torch.testing.assert_close(features[0], whole[step], rtol=0, atol=1e-5)
    torch.testing.assert_close(memory, after)


def test_a_fresh_policy_is_near_uniform():
    fresh = TorchPolicy(Shape(observation_width=WIDTH, head_sizes=SIZES, hidden=HIDDEN), RngPath(0))
    features, _ = fresh.features(torch.ones(1, 2, WIDTH), torch.zeros(2, 2, HIDDEN))
    assert (fresh.logits(features, torch.zeros(1, 2, len(SIZES), dtype=torch.int64)).abs() < 0.1).all()


def test_what_the_network_expects_leaves_the_memory_alone_and_a_decision_moves_it():
    policy, memory = fresh_policy(), np.zeros((2, ENVS, HIDDEN), dtype=np.float32)
    seen = np.ones((ENVS, WIDTH), dtype=np.float32)
    values = policy.values(seen, memory)
    assert not memory.any()

    class Everything:
        def mask(self, head: int, chosen: np.ndarray) -> np.ndarray:
            return np.ones((ENVS, SIZES[head]), dtype=bool)

    assert policy.decide(seen, memory, Everything(), None).values.tolist() == values.tolist()
    assert memory.all()
