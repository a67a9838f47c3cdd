"""The policy in C++: what torch's computes in float64, what it refuses, and what its bits do not depend on.

Over few numbers a normalisation leaves gradients that float32 rounds away, here and in torch: hidden >= 8.
"""

import ctypes
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels.compiler import needs_compiler
from support.kernels.native_policy import (
    BUILT,
    RULE,
    Case,
    Fixed,
    batch_of,
    cases,
    needs_library,
    networks,
    with_log_probs_near,
    write,
)

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Batch, Shape
from workers.native import build, library
from workers.native.policy import NativePolicy, _Step
from workers.ppo.torch_policy import ADAM_BETAS, ADAM_EPS

pytestmark = needs_library
_HEADS = Shape(observation_width=3, hidden=8, head_sizes=(3, 2))
_REFUSED = "refuses|in one piece|cannot be written"
_CASE = Case(_HEADS, 4, 5, memory=True, ragged=True, masked=True, key=5)
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
    some = np.union1d(some, [0])
    batch = with_log_probs_near(batch_of(case), policy, case.key)
    rule = replace(RULE, max_grad_norm=1e9, lr=0.0)
    expected = wide.learn(widened(batch), some, rule)
    found = policy.learn(batch, some, rule)
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
    batch = with_log_probs_near(batch_of(case), policy, case.key)
    every = np.arange(case.sequences)
    for step in (1, 2):
        before = {name: weight.astype(np.float64) for name, weight in policy.weights.items()}
        assert wide.learn(widened(batch), every, RULE).stepped
        assert policy.learn(batch, every, RULE).stepped
        largest = max(map(_largest, wide.means.values()))
        most = max(map(_largest, wide.squares.values()))
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
        self._masks = masks
        self._sizes = sizes

    def mask(self, head: int, chosen: np.ndarray) -> np.ndarray:
        rows = (np.arange(len(chosen)) + chosen.sum(1)) % len(chosen)
        return self._masks[rows, head, : self._sizes[head]]


@given(cases(8), st.booleans())
@settings(max_examples=40)
def test_decisions_are_those_of_torch(case: Case, greedy: bool) -> None:
    """Two steps, so that memory has gone on once; masks that are known beforehand give the same bits."""
    wide, policy = networks(case.shape, case.key)
    batch = batch_of(replace(case, steps=2, ragged=False))
    heads = case.shape.head_sizes
    rng = np.random.default_rng(case.key)
    memory = wide.initial_memory(case.sequences)
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
    rng = np.random.default_rng(0)
    lone = {"observation_width": 1, "hidden": 1, "memory": "none"}
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
    batch = with_log_probs_near(batch_of(Case(shape, 4, 3, memory=False, ragged=False, masked=False, key=1)), policy, 1)
    before = policy._flat.tobytes()
    every = np.arange(3)
    beyond = policy.learn(batch, every, replace(RULE, target_kl=1e-9))
    assert beyond.kl > 1e-9
    assert (beyond.stepped, beyond.grad_norm) == (False, None)
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


@given(cases())
@settings(max_examples=30)
def test_a_row_has_the_same_bits_alone_and_in_a_batch(case: Case) -> None:
    """Decisions on every row, and the evaluation of a whole sequence."""
    _, policy = networks(case.shape, case.key)
    batch = batch_of(case)
    rng = np.random.default_rng(case.key)
    uniforms = rng.random(batch.actions.shape[1:])
    seen = batch.observations[0]

    def decided(rows: slice, memory: np.ndarray) -> list[list[bytes]]:
        masks = None if batch.masks is None else Fixed(batch.masks[0, rows], case.shape)
        found = policy.decide(seen[rows], memory, masks, uniforms[rows])
        return [[one.tobytes() for one in part] for part in found if part is not None]

    state = rng.standard_normal((2, case.sequences, case.shape.hidden)).astype(np.float32)
    together = state.copy()
    whole = decided(slice(None), together)
    for row in range(case.sequences):
        one = slice(row, row + 1)
        alone = state[:, row : row + 1].copy()
        assert decided(one, alone) == [part[one] for part in whole]
        assert alone.tobytes() == together[:, one].tobytes()
    of_first = batch.valid & (np.arange(case.sequences) == 0)
    first = policy.evaluate(replace(batch, valid=of_first))
    every = policy.evaluate(batch)
    assert [part.tobytes() for part in first] == [part[of_first[batch.valid]].tobytes() for part in every]


@given(cases())
@settings(max_examples=30)
def test_what_comes_after_the_last_valid_step_is_not_looked_at(case: Case) -> None:
    (_, policy), (_, other) = (networks(case.shape, case.key) for _ in range(2))
    batch = with_log_probs_near(batch_of(replace(case, ragged=True)), policy, case.key)
    poisoned = {name: array.copy() for name, array in vars(batch).items() if isinstance(array, np.ndarray)}
    for name in ("observations", "log_probs", "advantages", "returns"):
        poisoned[name][~batch.valid] = np.nan
    poisoned["actions"][~batch.valid] = 2**40
    every = np.arange(case.sequences)
    assert policy.learn(batch, every, RULE) == other.learn(replace(batch, **poisoned), every, RULE)
    assert policy._flat.tobytes() == other._flat.tobytes()


def _bits(case: Case, of: ctypes.CDLL | None = None) -> list[bytes]:
    """What a library makes of a case: decisions, an evaluation, two updates."""
    _, policy = networks(case.shape, case.key, of)
    batch = batch_of(case)
    every = np.arange(case.sequences)
    rng = np.random.default_rng(case.key)
    state = np.zeros((2, case.sequences, case.shape.hidden), np.float32)
    masks = None if batch.masks is None else Fixed(batch.masks[0], case.shape)
    decision = policy.decide(batch.observations[0], state, masks, rng.random(batch.actions.shape[1:]))
    found = [state, *policy.evaluate(batch), decision.actions, decision.log_probs, decision.values]
    learnt = [policy.learn(batch, every, RULE) for _ in range(2)]
    return [*(array.tobytes() for array in (*found, *policy.weights.values())), repr(learnt).encode()]


@pytest.mark.skipif(not {"native-avx2", "native-avx512"} <= set(BUILT), reason="only one fused width runs here")
@given(cases())
@settings(max_examples=40)
def test_wider_vectors_give_the_same_bits(case: Case) -> None:
    assert _bits(case, library.load("native-avx2")) == _bits(case, library.load("native-avx512"))


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The policy alone, built for vectors of 4 with fused multiply-add."""
    folder = tmp_path_factory.mktemp("narrow")
    (folder / "src").mkdir()
    for file in (build.HERE / "src").iterdir():
        if file.suffix == ".h" or file.name.startswith("policy") or file.name == "lanes.cpp":
            shutil.copy(file, folder / "src")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(build.WIDTHS, "narrow", build.Width(4, ("-mavx2", "-mfma")))
        build.make("narrow", folder, folder)
    return ctypes.CDLL(str(folder / build.library("narrow")))


@pytest.mark.slow
@needs_compiler
@pytest.mark.skipif("native-avx2" not in BUILT, reason="no fused multiply-add here")
@given(case=cases())
@settings(max_examples=40)
def test_narrower_vectors_give_the_same_bits(narrow: ctypes.CDLL, case: Case) -> None:
    assert _bits(case, narrow) == _bits(case, library.load("native-avx2"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"observation_width": 0},
        {"hidden": 0},
        {"head_sizes": (2, 0)},
        {"head_sizes": ()},
        {"dimensions": 1},
    ],
)
@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_a_network_that_cannot_be_is_refused(wrong: dict[str, Any], memory: str) -> None:
    shape = Shape(**{"observation_width": 3, "hidden": 8, "head_sizes": (2,), "memory": memory} | wrong)
    with pytest.raises(ValueError, match="refuses"):
        NativePolicy(shape, RngPath(0), library.load(BUILT[0]))


@pytest.mark.parametrize(
    "named",
    [
        lambda batch: {"observations": batch.observations[:, :, :-1].copy()},
        lambda batch: {"observations": batch.observations.astype(np.float64)},
        lambda batch: {"observations": np.asfortranarray(batch.observations)},
        lambda batch: {"actions": batch.actions.astype(np.float64)},
        lambda batch: {"actions": np.where(batch.valid[..., None], 3, 0)},
        lambda batch: {"actions": np.where(batch.valid[..., None], -1, 0)},
        lambda batch: {"masks": batch.masks[..., :-1].copy()},
        lambda batch: {"valid": np.zeros_like(batch.valid)},
        lambda batch: {"valid": batch.valid.astype(np.int64)},
        lambda batch: {"returns": batch.returns[:-1].copy()},
        lambda batch: {"memory": batch.memory[:1].copy()},
    ],
)
def test_arrays_that_do_not_fit_are_refused_before_any_work(named: Callable[[Any], dict[str, Any]]) -> None:
    _, policy = networks(_HEADS, 5)
    batch = batch_of(_CASE)
    before = policy._flat.tobytes()
    broken = replace(batch, **named(batch))
    with pytest.raises(ValueError, match=_REFUSED):
        policy.evaluate(broken)
    wrong = [(broken, [0, 1, 2, 3, 4]), (batch, [-1]), (batch, [5]), (batch, [])]  # sequences that are not there
    for given_batch, sequences in wrong:
        with pytest.raises(ValueError, match=_REFUSED):
            policy.learn(given_batch, np.array(sequences, dtype=np.int64), RULE)
    assert policy._flat.tobytes() == before
    assert policy.steps == 0


@pytest.mark.parametrize(
    ("rows", "width", "memory", "writeable", "choices"),
    [
        (0, 3, 8, True, 2),
        (2, 4, 8, True, 2),
        (2, 3, 7, True, 2),
        (2, 3, 8, False, 2),
        (2, 3, 8, True, 1),
    ],
)
def test_a_step_that_does_not_fit_is_refused(rows: int, width: int, memory: int, writeable: bool, choices: int) -> None:
    _, policy = networks(_HEADS, 5)
    state = np.zeros((2, rows, memory), np.float32)
    state.flags.writeable = writeable
    with pytest.raises(ValueError, match=_REFUSED):
        policy.decide(np.zeros((rows, width), np.float32), state, None, np.zeros((rows, choices)))


def test_heads_are_chosen_in_order_and_once() -> None:
    """As the library itself sees it: before a step, out of order, twice, beyond the last one."""
    _, policy = networks(_HEADS, 5)
    actions = np.zeros((4, 2), np.int64)
    log_probs = np.zeros(4)
    state = np.zeros((2, 4, 8), np.float32)
    step = _Step(rows=4, actions=actions.ctypes.data, log_probs=log_probs.ctypes.data)

    def choose(first: int, count: int) -> int:
        return int(policy._library.esper_policy_choose(policy._handle, step, first, count, None))

    assert choose(0, 1) == choose(0, 2) == 3
    policy.values(np.zeros((4, 3), np.float32), state)
    assert [choose(1, 1), choose(0, 3), choose(0, 0), choose(0, 1), choose(0, 1), choose(1, 1), choose(2, 1)] == [
        3,
        3,
        3,
        0,
        3,
        0,
        3,
    ]
    assert (log_probs < 0.0).all()
    policy.evaluate(batch_of(_CASE))  # takes the step's place
    assert choose(0, 2) == 3
