"""Masked, factored heads: probabilities by enumeration and sampling by inverse CDF."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Shape
from workers.ppo import distributions
from workers.ppo.distributions import choice_weights, most_probable, normal_sample, pad_heads, sample
from workers.ppo.torch_policy import TorchPolicy

SIZES = (3, 2, 2, 3)


class TinyMasks:
    """Op 0 uses no other head; op 1 uses slot (only slot 1 is valid) and head 2; op 2 uses slot and head 3.

    Head 3 may not repeat the slot's number: a mask that depends on an earlier, non-op choice.
    """

    def mask(self, head: int, choices: np.ndarray) -> np.ndarray:
        return np.array([self.row(head, tuple(row)) for row in choices])

    @staticmethod
    def row(head: int, choices: tuple[int, ...]) -> list[bool]:
        if head == 0:
            return [True, True, True]
        op = choices[0]
        if head == 1:
            return [[False, False], [False, True], [True, True]][op]
        if head == 2:
            return [op == 1] * 2
        return [op == 2 and value != choices[1] for value in range(3)]


def reachable() -> list[tuple[int, ...]]:
    """All decisions that the masks allow, as tuples of one action per head, unused heads 0."""
    decisions: list[tuple[int, ...]] = [()]
    for head, size in enumerate(SIZES):
        longer_choices = []
        for choices in decisions:
            row = TinyMasks.row(head, choices)
            longer_choices += [(*choices, a) for a in range(size) if row[a]] or [(*choices, 0)]
        decisions = longer_choices
    return decisions


def tiny_policy() -> TorchPolicy:
    policy = TorchPolicy(Shape(observation_width=4, head_sizes=SIZES, hidden=8), RngPath(3))
    for group in range(3):
        policy.weights[f"actor.{group}.logits.weight"] *= 100.0  # far from uniform
    return policy


def test_sampled_decisions_have_the_frequencies_of_their_recorded_probabilities():
    policy = tiny_policy()
    n = 20_000
    observation = np.tile(np.array([0.3, -0.2, 0.9, 0.1], dtype=np.float32), (n, 1))
    uniforms = np.random.default_rng(0).random((n, len(SIZES)))
    policy_decisions = policy.decide(observation, policy.initial_memory(n), TinyMasks(), uniforms)
    rows = [tuple(row) for row in policy_decisions.actions.tolist()]
    assert set(rows) <= set(reachable())
    for decision in set(rows):
        probability = float(np.exp(policy_decisions.log_probs[rows.index(decision)]))
        spread = np.sqrt(probability * (1 - probability) / n)
        assert rows.count(decision) / n == pytest.approx(probability, abs=5 * spread + 1e-4)


def test_greedy_decisions_take_the_most_probable_choice_of_each_head():
    policy = tiny_policy()
    observation = np.random.default_rng(1).standard_normal((50, 4)).astype(np.float32)
    policy_decisions = policy.decide(observation, policy.initial_memory(50), TinyMasks(), None)
    with torch.no_grad():
        features = policy.features(torch.from_numpy(observation)[None], torch.zeros(2, 50, 8)).actor
        logits = policy.logits(features[0], torch.from_numpy(policy_decisions.actions)).numpy()
    assert policy_decisions.actions.tolist() == np.where(policy_decisions.masks, logits, -np.inf).argmax(-1).tolist()
    assert set(map(tuple, policy_decisions.actions.tolist())) <= set(reachable())


def test_padded_logits_have_a_row_per_head():
    padded_logits = pad_heads(torch.arange(6.0)[None], (3, 1, 2))
    assert padded_logits.tolist() == [[[0, 1, 2], [3, 0, 0], [4, 5, 0]]]
    assert pad_heads(torch.arange(4.0)[None], (2, 2)).tolist() == [[[0, 1], [2, 3]]]


LOGITS = st.lists(st.tuples(st.floats(-2000, 2000, width=32), st.booleans()), min_size=1, max_size=7)


@given(LOGITS, st.floats(0, 1, exclude_max=True) | st.just(np.nextafter(1.0, 0.0)))
def test_a_sampled_choice_is_valid_for_any_logits_and_mask(logits: list[tuple[float, bool]], uniform: float):
    numbers, mask = np.array(logits, dtype=np.float32).T[:, None]
    weights = choice_weights(numbers)
    mask = mask.astype(bool)
    for choice in (sample(weights, mask, np.array([uniform]))[0], most_probable(weights, mask)[0]):
        assert mask[0, choice] if mask.any() else choice == 0


def test_the_entropy_of_masked_choices_is_exact():
    logits = torch.tensor([[[0.0, 0.0, 0.0], [50.0, 0.0, 0.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]])
    masks = torch.tensor([[[True, True, False], [True, True, True], [False, True, False], [False, False, False]]])
    entropies = distributions.head_entropies(distributions.masked_log_softmax(logits, masks), masks)
    assert entropies.tolist() == [pytest.approx([np.log(2.0), 0.0, 0.0, 0.0], abs=1e-12)]


def test_sampled_choices_equal_the_inverse_cdf_computed_by_hand():
    weights = np.array([[1.0, 5.0, 2.0, 1.0]] * 4)
    mask = np.array([[True, False, True, True]] * 4)  # cdf 0.25, 0.25, 0.75, 1
    assert sample(weights, mask, np.array([0.0, 0.24, 0.25, 0.75])).tolist() == [0, 0, 2, 3]


def test_later_heads_depend_on_op_and_slot():
    policy = tiny_policy()
    features = torch.randn(1, 8, generator=torch.Generator().manual_seed(2))
    pairs = itertools.product((0, 1), (0, 1))
    logits = {pair: policy.logits(features, torch.tensor([[*pair, 0, 0]])) for pair in pairs}
    op_row = slice(0, 1)
    slot_row = slice(1, 2)
    later_heads = slice(2, None)
    assert torch.equal(logits[0, 0][:, op_row], logits[1, 1][:, op_row])
    assert torch.equal(logits[0, 0][:, slot_row], logits[0, 1][:, slot_row])
    assert not torch.allclose(logits[0, 0][:, slot_row], logits[1, 0][:, slot_row])
    assert not torch.allclose(logits[0, 0][:, later_heads], logits[1, 0][:, later_heads])
    assert not torch.allclose(logits[0, 0][:, later_heads], logits[0, 1][:, later_heads])


MEANS = np.array([[0.5, -2.0], [1.0, 3.0]])
LOG_STDS = np.array([[0.0, -1.0], [0.7, 0.2]])
PARAMETERS = torch.from_numpy(np.stack((MEANS, LOG_STDS), -1))
NORMALS = stats.norm(MEANS, np.exp(LOG_STDS))


def test_densities_and_entropies_equal_those_of_the_normal_distribution() -> None:
    actions = np.array([[0.0, -1.0], [5.0, 2.5]])
    actual = distributions.normal_log_prob(PARAMETERS, torch.from_numpy(actions)).numpy()
    assert actual == pytest.approx(NORMALS.logpdf(actions).sum(-1))
    assert distributions.normal_entropies(PARAMETERS).numpy() == pytest.approx(NORMALS.entropy())


@pytest.mark.parametrize("uniform", [0.0, 1e-12, 0.3, 0.5, 1.0 - 2.0**-53])
def test_normal_samples_are_finite_for_every_uniform_number(uniform: float) -> None:
    actual = normal_sample(PARAMETERS, np.full((2, 2), uniform)).numpy()
    assert np.isfinite(actual).all()
    assert actual == pytest.approx(NORMALS.ppf(max(uniform, 2.0**-54)))
