"""Initial weights come from the rng path alone; one step of the network equals its unrolled sequence."""

import numpy as np
import torch

from esper_ab.contracts.rng import RngPath
from workers.ppo.policy import ActorCritic, Shape, orthogonal


def policy(rng_seed: int = 0, sizes: tuple[int, ...] = (6, 3, 7, 5)) -> ActorCritic:
    return ActorCritic(Shape(observation_width=10, head_sizes=sizes, hidden=16), RngPath(rng_seed) / "policy-init")


def test_the_same_path_gives_the_same_weights_whatever_torch_did_before():
    first = policy().state_dict()
    torch.manual_seed(1234)
    before = torch.get_rng_state()
    second = policy().state_dict()
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_no_two_matrices_share_their_numbers():
    matrices = [tensor for tensor in policy().state_dict().values() if tensor.shape == (16, 16)]
    assert len(matrices) >= 4
    assert len({tuple(tensor.flatten().tolist()) for tensor in matrices}) == len(matrices)


def test_the_gates_of_the_memory_start_different():
    for name in ("weight_ih_l0", "weight_hh_l0"):
        gates = policy().lstm.state_dict()[name].split(16)
        assert len({tuple(gate.flatten().tolist()) for gate in gates}) == 4


def test_orthogonal_has_orthonormal_rows_or_columns():
    wide, tall = orthogonal(3, 5, 2.0, RngPath(0)), orthogonal(5, 3, 2.0, RngPath(0))
    np.testing.assert_allclose(wide @ wide.T, 4.0 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(tall.T @ tall, 4.0 * np.eye(3), atol=1e-12)


def test_forget_gates_start_open_and_the_policy_near_uniform():
    fresh = policy()
    biases = fresh.lstm.state_dict()
    assert (biases["bias_ih_l0"] + biases["bias_hh_l0"]).tolist() == [0.0] * 16 + [1.0] * 16 + [0.0] * 32
    features, _ = fresh.features(torch.ones(1, 2, 10), fresh.initial_state(2))
    assert (fresh.logits(features, torch.zeros(1, 2, 4, dtype=torch.int64)).abs() < 0.1).all()


def test_steps_and_sequence_agree():
    fresh = policy()
    observations = torch.randn(7, 3, 10, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole, (h_whole, c_whole) = fresh.features(observations, fresh.initial_state(3))
        state = fresh.initial_state(3)
        for step, observation in enumerate(observations):
            features, state = fresh.step(observation, state)
            torch.testing.assert_close(features, whole[step], rtol=0, atol=1e-5)
    torch.testing.assert_close(state[0], h_whole)
    torch.testing.assert_close(state[1], c_whole)


def test_rescaled_values_are_scaled_and_shifted():
    fresh = policy()
    features = torch.randn(4, 16, generator=torch.Generator().manual_seed(0))
    before = fresh.values(features)
    fresh.rescale_values(3.0, -2.0)
    torch.testing.assert_close(fresh.values(features), before * 3.0 - 2.0)


def test_the_first_head_starts_where_its_bias_says_and_nothing_else_moves():
    bias = (0.0, 0.5, -3.0, -1.0, 2.0, 0.25)
    plain, biased = policy(), ActorCritic(
        Shape(observation_width=10, head_sizes=(6, 3, 7, 5), hidden=16, first_bias=bias), RngPath(0) / "policy-init"
    )
    features, _ = plain.features(torch.ones(1, 2, 10), plain.initial_state(2))
    actions = torch.zeros(1, 2, 4, dtype=torch.int64)
    moved = (biased.logits(features, actions) - plain.logits(features, actions)).detach().numpy()
    np.testing.assert_allclose(moved[:, :, 0, :6], np.broadcast_to(bias, (1, 2, 6)), atol=1e-6)
    assert (moved[:, :, 1:] == 0.0).all()
