"""Initial weights depend only on the rng path; a state belongs to one network shape."""

import numpy as np
import pytest
import torch

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Shape
from workers.initial_weights import initial_weights, orthogonal
from workers.ppo.torch_policy import TorchPolicy

SIZES = (6, 3, 7, 5)


def weights(rng_seed: int = 0, **shape: object) -> dict[str, np.ndarray]:
    sizes = {"observation_width": 10, "head_sizes": SIZES, "hidden": 16} | shape
    return initial_weights(Shape(**sizes), RngPath(rng_seed))


def policy(hidden: int = 16, memory: str = "lstm") -> TorchPolicy:
    return TorchPolicy(Shape(observation_width=10, head_sizes=SIZES, hidden=hidden, memory=memory), RngPath(0))


def test_initial_weights_depend_only_on_the_rng_path():
    first_weights = policy().weights
    torch.manual_seed(1234)
    torch_state = torch.get_rng_state()
    second_weights = policy().weights
    assert torch.equal(torch_state, torch.get_rng_state())
    assert all(np.array_equal(first_weights[name], second_weights[name]) for name in first_weights)
    assert any(
        not np.array_equal(first_weights[name], other_weight) for name, other_weight in weights(rng_seed=1).items()
    )


def test_no_two_weight_matrices_have_the_same_numbers():
    """Those of the memory's gates among them."""
    matrices = [weight.reshape(-1, 256) for weight in weights().values() if weight.shape in ((16, 16), (64, 16))]
    rows = np.concatenate(matrices).tolist()
    assert len(set(map(tuple, rows))) == len(rows) >= 12


def test_an_orthogonal_matrix_has_orthonormal_rows_or_columns():
    wide_matrix = orthogonal(3, 5, 2.0, RngPath(0))
    tall_matrix = orthogonal(5, 3, 2.0, RngPath(0))
    np.testing.assert_allclose(wide_matrix @ wide_matrix.T, 4.0 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(tall_matrix.T @ tall_matrix, 4.0 * np.eye(3), atol=1e-12)


def test_the_forget_gates_of_the_memory_start_open():
    weight_arrays = weights()
    assert weight_arrays["lstm.bias_ih_l0"].tolist() == [0.0] * 16 + [1.0] * 16 + [0.0] * 32
    biases = [weight for name, weight in weight_arrays.items() if "bias" in name and name != "lstm.bias_ih_l0"]
    assert len(biases) == 12
    assert not any(bias.any() for bias in biases)


def test_a_bias_setting_changes_only_the_bias_of_the_first_head():
    bias = (0.0, 0.5, -3.0, -1.0, 2.0, 0.25)
    plain_weights = weights()
    biased_weights = weights(first_bias=bias)
    assert [name for name in plain_weights if not np.array_equal(plain_weights[name], biased_weights[name])] == [
        "actor.0.logits.bias"
    ]
    assert biased_weights["actor.0.logits.bias"].tolist() == list(bias)


def test_rescaling_the_critic_scales_and_shifts_its_values():
    fresh_policy = policy()
    memory = np.zeros((2, 4, 16), dtype=np.float32)
    observations = np.random.default_rng(0).standard_normal((4, 10)).astype(np.float32)
    values_before = fresh_policy.values(observations, memory)
    fresh_policy.rescale_values(3.0, -2.0)
    np.testing.assert_allclose(fresh_policy.values(observations, memory), values_before * 3.0 - 2.0, rtol=1e-5)


@pytest.mark.parametrize("changes", [{"hidden": 8}, {"memory": "none"}])
def test_a_state_of_another_network_is_refused(changes: dict[str, object]):
    with pytest.raises((LookupError, ValueError), match="weights of"):
        policy(**changes).load(policy().state())
