"""Initial weights depend only on the rng path, and have the distributions and gains that the settings name."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Shape
from workers.initial_weights import initial_weights, orthogonal
from workers.ppo.torch_policy import TorchPolicy

SIZES = (6, 3, 7, 5)


def weights(rng_seed: int = 0, **shape: object) -> dict[str, np.ndarray]:
    sizes = {"observation_width": 10, "head_sizes": SIZES, "hidden": 16} | shape
    return initial_weights(Shape(**sizes), RngPath(rng_seed))


def test_initial_weights_depend_only_on_the_rng_path():
    first_weights = TorchPolicy(Shape(observation_width=10, head_sizes=SIZES, hidden=16), RngPath(0)).weights
    torch.manual_seed(1234)
    torch_state = torch.get_rng_state()
    second_weights = TorchPolicy(Shape(observation_width=10, head_sizes=SIZES, hidden=16), RngPath(0)).weights
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


def is_uniform_within(weight: np.ndarray, limit: float) -> bool:
    """Whether a matrix of many numbers is not told from uniform ones within a limit, and is within it."""
    flat_weight = weight.ravel()
    p = stats.kstest(flat_weight, stats.uniform(-limit, 2 * limit).cdf).pvalue
    return bool(np.abs(flat_weight).max() <= np.float32(limit) and p > 1e-4)


def test_the_last_layers_of_actor_and_critic_have_gains_of_their_own():
    """By default they are 0.01 and 0.1; the rows of all other layers have the square root of 2."""
    default_weights = weights(hidden=64)
    changed_weights = weights(hidden=64, actor_gain=1.0, critic_gain=0.5)
    for array, gains in ((default_weights, (0.01, 0.1)), (changed_weights, (1.0, 0.5))):
        norms = [np.linalg.norm(array[f"{name}.weight"], axis=1) for name in ("actor.0.logits", "value_out")]
        assert norms[0] == pytest.approx(np.full(6, gains[0]), rel=1e-6)
        assert norms[1] == pytest.approx([gains[1]], rel=1e-6)
    differing_names = [
        name for name, weight in default_weights.items() if not np.array_equal(weight, changed_weights[name])
    ]
    assert differing_names == [f"actor.{group}.logits.weight" for group in range(3)] + ["value_out.weight"]
    inner_layer = default_weights["actor.0.inner.weight"]
    np.testing.assert_allclose(inner_layer @ inner_layer.T, 2.0 * np.eye(64), atol=1e-5)
    assert weights(actor_gain=0.0)["actor.0.logits.weight"].tolist() == np.zeros((6, 16)).tolist()


def test_xavier_weights_are_uniform_within_glorots_limit():
    array = weights(init="xavier", hidden=64, actor_gain=1.0)
    assert is_uniform_within(array["encoder.0.weight"], math.sqrt(6 / (10 + 64)))
    assert is_uniform_within(array["actor.0.inner.weight"], math.sqrt(6 / 128))
    assert is_uniform_within(array["actor.0.logits.weight"], math.sqrt(6 / (64 + 6)))
    for gate in np.split(array["lstm.weight_hh_l0"], 4):
        assert is_uniform_within(gate, math.sqrt(6 / 128))
    biases = [weight for name, weight in array.items() if name.endswith(("0.bias", "inner.bias", "logits.bias"))]
    assert len(biases) == 8
    assert not any(bias.any() for bias in biases)
    assert array["lstm.bias_ih_l0"].tolist() == [0.0] * 64 + [1.0] * 64 + [0.0] * 128


def test_pytorch_weights_are_distributed_as_those_of_torch_nn():
    array = weights(init="pytorch", hidden=64, actor_gain=0.5)
    torch.manual_seed(0)
    linear = torch.nn.Linear(10, 64)
    lstm = torch.nn.LSTM(64, 64)
    for name, layer in (("encoder.0.weight", linear.weight), ("encoder.0.bias", linear.bias)):
        assert is_uniform_within(array[name], 1 / math.sqrt(10))
        assert is_uniform_within(layer.detach().numpy(), 1 / math.sqrt(10))
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
        assert is_uniform_within(array[f"lstm.{name}"], 1 / 8)
        assert is_uniform_within(getattr(lstm, name).detach().numpy(), 1 / 8)
    assert is_uniform_within(array["actor.2.logits.weight"], 0.5 / 8)
    assert 0.0 < np.abs(array["actor.2.logits.bias"]).max() <= 0.5 / 8
    assert array["actor.1.choices.0.weight"].std() == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("init", ["orthogonal", "xavier", "pytorch"])
def test_a_separate_critic_starts_with_a_trunk_of_its_own(init: str):
    """The actor's is the same as in a network with one trunk."""
    shared, separate = (weights(init=init, trunk=trunk) for trunk in ("shared", "separate"))
    assert [name for name in separate if name not in shared] == [
        f"critic_trunk.{name}" for name in shared if name.split(".")[0] in ("encoder", "lstm", "norm")
    ]
    assert all(np.array_equal(weight, separate[name]) for name, weight in shared.items())
    assert not np.array_equal(separate["encoder.0.weight"], separate["critic_trunk.encoder.0.weight"])
    assert not np.array_equal(separate["lstm.weight_hh_l0"], separate["critic_trunk.lstm.weight_hh_l0"])


def test_without_layer_norms_only_their_weights_are_missing():
    array = weights()
    norm_free = weights(layer_norm=False)
    assert [name for name in array if name not in norm_free] == [
        "encoder.1.weight",
        "encoder.1.bias",
        "norm.weight",
        "norm.bias",
    ]
    assert all(np.array_equal(weight, array[name]) for name, weight in norm_free.items())


def test_continuous_actions_start_with_the_given_standard_deviation():
    array = initial_weights(Shape(observation_width=2, dimensions=3, hidden=8, log_std=-0.5), RngPath(0))
    assert array["actor.0.log_std"].tolist() == [-0.5, -0.5, -0.5]
