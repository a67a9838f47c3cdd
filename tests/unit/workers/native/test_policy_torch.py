"""The policy in C++ against torch's in float64: outputs, gradients, updates and decisions.

Over few numbers a normalisation leaves gradients that float32 rounds away, here and in torch: hidden >= 8.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.native_policy import BUILT, RULE, Case, Fixed, batch_of, cases, near, needs_library, networks, write

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Batch, Shape
from workers.native import library
from workers.native.policy import NativePolicy
from workers.ppo.torch_policy import ADAM_BETAS, ADAM_EPS

pytestmark = needs_library
CLOSE = 1e-5  # of the largest number of an array, of all gradients


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array).max(initial=0.0))


def apart(found: np.ndarray, expected: np.ndarray, floor: float = 0.1) -> float:
    """Largest difference, of the largest number that is expected or of `floor`."""
    assert found.shape == expected.shape
    return _largest(found - expected) / max(_largest(expected), floor)


def widened(batch: Batch) -> Batch:
    memory = None if batch.memory is None else batch.memory.astype(np.float64)
    return replace(batch, observations=batch.observations.astype(np.float64), memory=memory)


@given(cases(8))
@settings(max_examples=40)
def test_log_probs_entropies_and_values_of_sequences(case: Case) -> None:
    wide, policy = networks(case.shape, case.key)
    batch = batch_of(case)
    for found, expected in zip(policy.evaluate(batch), wide.evaluate(widened(batch)), strict=True):
        assert apart(found, expected) < CLOSE


@given(cases(8))
@settings(max_examples=60)
def test_gradients_and_losses_of_a_minibatch(case: Case) -> None:
    """A minibatch has some of the sequences, one with a valid step among them; Adam's first mean is the gradient."""
    wide, policy = networks(case.shape, case.key)
    some = np.random.default_rng(case.key).permutation(case.sequences)[: max(1, case.sequences // 2)]
    some, batch = np.union1d(some, [0]), near(batch_of(case), policy, case.key)
    rule = replace(RULE, max_grad_norm=1e9, lr=0.0)
    expected, found = wide.learn(widened(batch), some, rule), policy.learn(batch, some, rule)
    largest = max(map(_largest, wide.means.values()))
    for name, mean in policy.means.items():
        assert apart(mean, wide.means[name], largest) < CLOSE, name
    assert found.stepped
    assert vars(found) == pytest.approx(vars(expected), rel=CLOSE, abs=1e-6)


@given(cases(8))
@settings(max_examples=25)
def test_parameters_after_two_updates(case: Case) -> None:
    """The second has another bias correction; what it starts from is what torch's float64 has after the first.

    A step is held against the formula: of a gradient as small as Adam's epsilon it makes much of the last digits.
    """
    wide, policy = networks(case.shape, case.key)
    assert list(policy.weights) == list(policy.means) == list(policy.squares) == list(wide.weights)
    batch, every = near(batch_of(case), policy, case.key), np.arange(case.sequences)
    for step in (1, 2):
        before = {name: weight.astype(np.float64) for name, weight in policy.weights.items()}
        assert wide.learn(widened(batch), every, RULE).stepped
        assert policy.learn(batch, every, RULE).stepped
        largest, most = max(map(_largest, wide.means.values())), max(map(_largest, wide.squares.values()))
        first, second = (1.0 - beta**step for beta in ADAM_BETAS)
        for name, weight in policy.weights.items():
            mean, square = (part[name].astype(np.float64) for part in (policy.means, policy.squares))
            assert apart(mean, wide.means[name], largest) < CLOSE, name
            assert apart(square, wide.squares[name], most) < 2 * CLOSE, name
            moved = before[name] - RULE.lr * mean / first / (np.sqrt(square / second) + ADAM_EPS)
            np.testing.assert_allclose(weight, moved, rtol=2e-7, atol=CLOSE * RULE.lr)
        write(wide, policy)
    assert policy.steps == wide.steps


class EarlierChoices:
    """Whose rows of masks are whose depends on all earlier choices."""

    def __init__(self, masks: np.ndarray, sizes: tuple[int, ...]) -> None:
        self._masks, self._sizes = masks, sizes

    def mask(self, head: int, chosen: np.ndarray) -> np.ndarray:
        rows = (np.arange(len(chosen)) + chosen.sum(1)) % len(chosen)
        return self._masks[rows, head, : self._sizes[head]]


@given(cases(8), st.booleans())
@settings(max_examples=40)
def test_decisions_are_those_of_torch(case: Case, greedy: bool) -> None:
    """Two steps, so that memory has gone on once; masks that are known beforehand give the same bits."""
    wide, policy = networks(case.shape, case.key)
    batch, heads = batch_of(replace(case, steps=2, ragged=False)), case.shape.head_sizes
    rng, memory = np.random.default_rng(case.key), wide.initial_memory(case.sequences)
    mine = memory.astype(np.float32)
    for step, seen in enumerate(batch.observations):
        uniforms = None if greedy else rng.random(batch.actions.shape[1:])
        masks = None if batch.masks is None else EarlierChoices(batch.masks[step], heads)
        before = memory.copy()
        expected = wide.decide(seen.astype(np.float64), memory, masks, uniforms)
        if masks is None and heads:  # what every choice is valid means
            every = np.arange(max(heads)) < np.tile(np.array(heads)[:, None], (case.sequences, 1, 1))
            alike = wide.decide(seen.astype(np.float64), before.copy(), Fixed(every, case.shape), uniforms)
            assert [part.tobytes() for part in alike[2:]] == [part.tobytes() for part in expected[2:]]
        ahead = policy.values(seen, mine)
        known = None if expected.masks is None else Fixed(expected.masks, case.shape)
        again = policy.decide(seen, mine.copy(), known, uniforms)
        found = policy.decide(seen, mine, masks, uniforms)
        for one, other, torch_s in zip(again, found, expected, strict=True):
            assert (one is None) == (other is None) == (torch_s is None)
            assert one is None or one.tobytes() == other.tobytes()
        assert ahead.tobytes() == found.values.tobytes()
        assert found.actions.dtype == expected.actions.dtype
        assert found.masks is None or (found.masks == expected.masks).all()
        assert apart(found.actions, expected.actions) < (1e-12 if heads else CLOSE)
        assert apart(found.log_probs, expected.log_probs) < CLOSE
        assert apart(found.values, expected.values) < CLOSE
        if case.shape.memory == "lstm":
            assert apart(mine, memory) < CLOSE


def test_float64_functions_are_accurate_to_its_last_digits() -> None:
    """Policies that decide by biases alone show the log-softmax of any logits, and normal quantiles."""
    rng, lone = np.random.default_rng(0), {"observation_width": 1, "hidden": 1, "memory": "none"}
    by_heads = NativePolicy(Shape(head_sizes=(40,), **lone), RngPath(0), library.load(BUILT[0]))
    logits = (rng.standard_normal(40) * np.geomspace(1e-3, 300.0, 40)).astype(np.float32)
    by_heads.weights["actor.0.logits.weight"][:], by_heads.weights["actor.0.logits.bias"][:] = 0.0, logits
    by_heads.changed()
    case = Case(by_heads.shape, 1, 40, memory=False, ragged=False, masked=False, key=0)
    found, _, _ = by_heads.evaluate(replace(batch_of(case), actions=np.arange(40)[None, :, None]))
    expected = torch.log_softmax(torch.from_numpy(logits).double(), -1).numpy()
    np.testing.assert_allclose(found, expected, rtol=4e-15, atol=1e-15)
    uniforms = np.concatenate(([0.0, 2.0**-54, 1e-12, 0.5, 0.075, 0.925, 1 - 2.0**-53], rng.random(1000)))[:, None]
    rows = np.zeros((len(uniforms), 1), np.float32)
    normal = NativePolicy(Shape(dimensions=1, **lone), RngPath(0), by_heads._library)
    normal.weights["actor.0.means.weight"][:] = 0.0
    normal.changed()
    found = normal.decide(rows, normal.initial_memory(len(rows)), None, uniforms).actions
    expected = torch.special.ndtri(torch.from_numpy(np.maximum(uniforms, 2.0**-54))).numpy()
    np.testing.assert_allclose(found, expected, rtol=4e-15, atol=1e-15)


@pytest.mark.parametrize("memory", ["lstm", "none"])
def test_a_step_beyond_the_target_kl_or_with_a_gradient_not_finite_changes_nothing(memory: str) -> None:
    shape = Shape(observation_width=3, hidden=9, head_sizes=(4,), memory=memory)
    _, policy = networks(shape, 1)
    batch = near(batch_of(Case(shape, 4, 3, memory=False, ragged=False, masked=False, key=1)), policy, 1)
    before, every = policy._flat.tobytes(), np.arange(3)
    beyond = policy.learn(batch, every, replace(RULE, target_kl=1e-9))
    assert not beyond.stepped
    assert beyond.kl > 1e-9
    assert beyond.grad_norm is None
    for broken in (np.nan, np.inf):
        advantages = batch.advantages.copy()
        advantages[0, 0] = broken
        learnt = policy.learn(replace(batch, advantages=advantages), every, RULE)
        assert not learnt.stepped
        assert not np.isfinite(learnt.grad_norm)
    assert policy.steps == 0
    assert policy._flat.tobytes() == before
    # What is not beyond it is learnt from.
    assert policy.learn(batch, every, replace(RULE, target_kl=beyond.kl)).stepped
    assert policy._flat.tobytes() != before
