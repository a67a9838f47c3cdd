"""The policy in C++ against torch in float64, its refusals, and bit-identical results.

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
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.kernels.compiler import needs_compiler
from support.kernels.native_policy import (
    BUILT,
    RULE,
    Case,
    Fixed,
    batch_of,
    cases,
    near_policy,
    needs_library,
    networks,
    write,
)

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Batch, Shape
from workers.native import build, library
from workers.native.policy import NativePolicy, _Step
from workers.ppo.torch_policy import ADAM_BETAS

pytestmark = needs_library
_HEADS = Shape(observation_width=3, hidden=8, head_sizes=(3, 2))
_REFUSED = "refuses|in one piece|cannot be written"
_CASE = Case(_HEADS, 4, 5, memory=True, ragged=True, masked=True, key=5)
NOT_AT_A_KINK = 1e-6
CLOSE = 1e-5  # of the largest number of an array, of all gradients


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array).max(initial=0.0))


def relative_error(actual: np.ndarray, expected: np.ndarray, floor: float = 0.1) -> float:
    """Largest difference, of the largest number that is expected or of `floor`."""
    assert actual.shape == expected.shape
    return _largest(actual - expected) / max(_largest(expected), floor)


def widened(batch: Batch) -> Batch:
    memory = None if batch.memory is None else batch.memory.astype(np.float64)
    return replace(batch, observations=batch.observations.astype(np.float64), memory=memory)


@given(cases(8))
@settings(max_examples=40)
def test_log_probs_entropies_and_values_of_sequences_equal_torch(case: Case) -> None:
    wide_policy, policy = networks(case.shape, case.key)
    batch = batch_of(case)
    for actual, expected in zip(policy.evaluate(batch), wide_policy.evaluate(widened(batch)), strict=True):
        assert relative_error(actual, expected) < CLOSE


@given(cases(8), st.sampled_from([0.0, 0.1, 0.3]))
@settings(max_examples=60)
def test_gradients_and_losses_of_a_minibatch_equal_torch(case: Case, value_clip: float) -> None:
    """A minibatch has some of the sequences, one with a valid step among them; Adam's first mean is the gradient."""
    wide_policy, policy = networks(case.shape, case.key)
    sequences = np.random.default_rng(case.key).permutation(case.sequences)[: max(1, case.sequences // 2)]
    sequences = np.union1d(sequences, [0])
    batch = near_policy(batch_of(case), policy, case.key)
    rule = replace(RULE, max_grad_norm=1e9, lr=0.0, value_clip=value_clip)
    expected = wide_policy.learn(widened(batch), sequences, rule)
    assume(wide_policy.kink_distance > NOT_AT_A_KINK)
    learning_step = policy.learn(batch, sequences, rule)
    largest_mean = max(map(_largest, wide_policy.means.values()))
    for name, mean in policy.means.items():
        assert relative_error(mean, wide_policy.means[name], largest_mean) < CLOSE, name
    assert learning_step.stepped
    assert vars(learning_step) == pytest.approx(vars(expected), rel=CLOSE, abs=5e-6)


@given(cases(8))
@settings(max_examples=25)
def test_parameters_after_two_updates_equal_torch(case: Case) -> None:
    """The second has another bias correction; what it starts from is what torch's float64 has after the first.

    A step is held against the formula: of a gradient as small as Adam's epsilon it makes much of the last digits.
    """
    wide_policy, policy = networks(case.shape, case.key)
    assert list(policy.weights) == list(policy.means) == list(policy.squares) == list(wide_policy.weights)
    batch = near_policy(batch_of(case), policy, case.key)
    sequences = np.arange(case.sequences)
    for step in (1, 2):
        weights_before = {name: weight.astype(np.float64) for name, weight in policy.weights.items()}
        assert wide_policy.learn(widened(batch), sequences, RULE).stepped
        assume(wide_policy.kink_distance > NOT_AT_A_KINK)
        assert policy.learn(batch, sequences, RULE).stepped
        largest_mean = max(map(_largest, wide_policy.means.values()))
        largest_square = max(map(_largest, wide_policy.squares.values()))
        first_correction, second_correction = (1.0 - beta**step for beta in ADAM_BETAS)
        for name, weight in policy.weights.items():
            mean, square = (part[name].astype(np.float64) for part in (policy.means, policy.squares))
            assert relative_error(mean, wide_policy.means[name], largest_mean) < CLOSE, name
            assert relative_error(square, wide_policy.squares[name], largest_square) < 2 * CLOSE, name
            expected_weight = weights_before[name] - RULE.lr * mean / first_correction / (
                np.sqrt(square / second_correction) + RULE.adam_eps
            )
            np.testing.assert_allclose(weight, expected_weight, rtol=2e-7, atol=CLOSE * RULE.lr)
        write(wide_policy, policy)
    assert policy.steps == wide_policy.steps


class EarlierChoices:
    """Whose rows of masks are whose depends on all earlier choices."""

    def __init__(self, masks: np.ndarray, sizes: tuple[int, ...]) -> None:
        self._masks = masks
        self._sizes = sizes

    def mask(self, head: int, choices: np.ndarray) -> np.ndarray:
        rows = (np.arange(len(choices)) + choices.sum(1)) % len(choices)
        return self._masks[rows, head, : self._sizes[head]]


@given(cases(8), st.booleans())
@settings(max_examples=40)
def test_decisions_equal_those_of_torch(case: Case, greedy: bool) -> None:
    """Two steps, so that memory has gone on once; masks that are known beforehand give the same bits."""
    wide_policy, policy = networks(case.shape, case.key)
    batch = batch_of(replace(case, steps=2, ragged=False))
    heads = case.shape.head_sizes
    rng = np.random.default_rng(case.key)
    memory = wide_policy.initial_memory(case.sequences)
    float32_memory = memory.astype(np.float32)
    for step, observation in enumerate(batch.observations):
        uniforms = None if greedy else rng.random(batch.actions.shape[1:])
        masks = None if batch.masks is None else EarlierChoices(batch.masks[step], heads)
        memory_before = memory.copy()
        expected = wide_policy.decide(observation.astype(np.float64), memory, masks, uniforms)
        if masks is None and heads:  # what every choice is valid means
            all_choices = np.arange(max(heads)) < np.tile(np.array(heads)[:, None], (case.sequences, 1, 1))
            wide_decisions = wide_policy.decide(
                observation.astype(np.float64), memory_before.copy(), Fixed(all_choices, case.shape), uniforms
            )
            assert [part.tobytes() for part in wide_decisions[2:]] == [part.tobytes() for part in expected[2:]]
        values_before = policy.values(observation, float32_memory)
        fixed_masks = None if expected.masks is None else Fixed(expected.masks, case.shape)
        fixed_decisions = policy.decide(observation, float32_memory.copy(), fixed_masks, uniforms)
        policy_decisions = policy.decide(observation, float32_memory, masks, uniforms)
        for fixed_part, part_decided, torch_s in zip(fixed_decisions, policy_decisions, expected, strict=True):
            assert (fixed_part is None) == (part_decided is None) == (torch_s is None)
            assert fixed_part is None or fixed_part.tobytes() == part_decided.tobytes()
        assert values_before.tobytes() == policy_decisions.values.tobytes()
        assert policy_decisions.actions.dtype == expected.actions.dtype
        assert policy_decisions.masks is None or (policy_decisions.masks == expected.masks).all()
        assert relative_error(policy_decisions.actions, expected.actions) < (1e-12 if heads else CLOSE)
        assert relative_error(policy_decisions.log_probs, expected.log_probs) < CLOSE
        assert relative_error(policy_decisions.values, expected.values) < CLOSE
        if case.shape.memory == "lstm":
            assert relative_error(float32_memory, memory) < CLOSE


def test_float64_functions_are_accurate_to_the_last_digits() -> None:
    """Policies that decide by biases alone show the log-softmax of any logits, and normal quantiles."""
    rng = np.random.default_rng(0)
    small_shape = {"observation_width": 1, "hidden": 1, "memory": "none"}
    by_heads = NativePolicy(Shape(head_sizes=(40,), **small_shape), RngPath(0), library.load(BUILT[0]))
    logits = (rng.standard_normal(40) * np.geomspace(1e-3, 300.0, 40)).astype(np.float32)
    by_heads.weights["actor.0.logits.weight"][:], by_heads.weights["actor.0.logits.bias"][:] = 0.0, logits
    by_heads.changed()
    case = Case(by_heads.shape, 1, 40, memory=False, ragged=False, masked=False, key=0)
    actual, _, _ = by_heads.evaluate(replace(batch_of(case), actions=np.arange(40)[None, :, None]))
    expected = torch.log_softmax(torch.from_numpy(logits).double(), -1).numpy()
    np.testing.assert_allclose(actual, expected, rtol=4e-15, atol=1e-15)
    uniforms = np.concatenate(([0.0, 2.0**-54, 1e-12, 0.5, 0.075, 0.925, 1 - 2.0**-53], rng.random(1000)))[:, None]
    rows = np.zeros((len(uniforms), 1), np.float32)
    normal_policy = NativePolicy(Shape(dimensions=1, **small_shape), RngPath(0), by_heads._library)
    normal_policy.weights["actor.0.means.weight"][:] = 0.0
    normal_policy.changed()
    actual = normal_policy.decide(rows, normal_policy.initial_memory(len(rows)), None, uniforms).actions
    expected = torch.special.ndtri(torch.from_numpy(np.maximum(uniforms, 2.0**-54))).numpy()
    np.testing.assert_allclose(actual, expected, rtol=4e-15, atol=1e-15)


@pytest.mark.parametrize("memory", ["lstm", "none"])
def test_a_step_beyond_the_target_kl_changes_no_weight(memory: str) -> None:
    shape = Shape(observation_width=3, hidden=9, head_sizes=(4,), memory=memory)
    _, policy = networks(shape, 1)
    batch = near_policy(batch_of(Case(shape, 4, 3, memory=False, ragged=False, masked=False, key=1)), policy, 1)
    weights_before = policy._flat.tobytes()
    sequences = np.arange(3)
    skipped_step = policy.learn(batch, sequences, replace(RULE, target_kl=1e-9))
    assert skipped_step.kl > 1e-9
    assert (skipped_step.stepped, skipped_step.grad_norm) == (False, None)
    for bad_number in (np.nan, np.inf):
        advantages = batch.advantages.copy()
        advantages[0, 0] = bad_number
        learning_step = policy.learn(replace(batch, advantages=advantages), sequences, RULE)
        assert not learning_step.stepped
        assert not np.isfinite(learning_step.grad_norm)
    assert policy.steps == 0
    assert policy._flat.tobytes() == weights_before
    # What is not beyond it is learnt from.
    assert policy.learn(batch, sequences, replace(RULE, target_kl=skipped_step.kl)).stepped
    assert policy._flat.tobytes() != weights_before


@given(cases())
@settings(max_examples=30)
def test_results_for_a_row_do_not_depend_on_its_batch(case: Case) -> None:
    """Decisions on every row, and the evaluation of a whole sequence."""
    _, policy = networks(case.shape, case.key)
    batch = batch_of(case)
    rng = np.random.default_rng(case.key)
    uniforms = rng.random(batch.actions.shape[1:])
    observation = batch.observations[0]

    def decided_bytes(rows: slice, memory: np.ndarray) -> list[list[bytes]]:
        masks = None if batch.masks is None else Fixed(batch.masks[0, rows], case.shape)
        decision = policy.decide(observation[rows], memory, masks, uniforms[rows])
        return [[array.tobytes() for array in part] for part in decision if part is not None]

    state = rng.standard_normal((2, case.sequences, case.shape.memory_width)).astype(np.float32)
    memory_of_all = state.copy()
    whole = decided_bytes(slice(None), memory_of_all)
    for row in range(case.sequences):
        row_slice = slice(row, row + 1)
        memory_of_row = state[:, row : row + 1].copy()
        assert decided_bytes(row_slice, memory_of_row) == [part[row_slice] for part in whole]
        assert memory_of_row.tobytes() == memory_of_all[:, row_slice].tobytes()
    first_column = batch.valid & (np.arange(case.sequences) == 0)
    evaluation_of_first = policy.evaluate(replace(batch, valid=first_column))
    evaluation_of_all = policy.evaluate(batch)
    assert [part.tobytes() for part in evaluation_of_first] == [
        part[first_column[batch.valid]].tobytes() for part in evaluation_of_all
    ]


@given(cases())
@settings(max_examples=30)
def test_steps_after_the_last_valid_step_are_ignored(case: Case) -> None:
    (_, policy), (_, poisoned_policy) = (networks(case.shape, case.key) for _ in range(2))
    batch = near_policy(batch_of(replace(case, ragged=True)), policy, case.key)
    nan_arrays = {name: array.copy() for name, array in vars(batch).items() if isinstance(array, np.ndarray)}
    for name in ("observations", "log_probs", "advantages", "returns"):
        nan_arrays[name][~batch.valid] = np.nan
    nan_arrays["actions"][~batch.valid] = 2**40
    sequences = np.arange(case.sequences)
    assert policy.learn(batch, sequences, RULE) == poisoned_policy.learn(replace(batch, **nan_arrays), sequences, RULE)
    assert policy._flat.tobytes() == poisoned_policy._flat.tobytes()


def _bits(case: Case, loaded_library: ctypes.CDLL | None = None) -> list[bytes]:
    """What a library makes of a case: decisions, an evaluation, two updates."""
    _, policy = networks(case.shape, case.key, loaded_library)
    batch = batch_of(case)
    sequences = np.arange(case.sequences)
    rng = np.random.default_rng(case.key)
    state = np.zeros((2, case.sequences, case.shape.memory_width), np.float32)
    masks = None if batch.masks is None else Fixed(batch.masks[0], case.shape)
    decision = policy.decide(batch.observations[0], state, masks, rng.random(batch.actions.shape[1:]))
    arrays = [state, *policy.evaluate(batch), decision.actions, decision.log_probs, decision.values]
    learning_steps = [policy.learn(batch, sequences, RULE) for _ in range(2)]
    return [*(array.tobytes() for array in (*arrays, *policy.weights.values())), repr(learning_steps).encode()]


@pytest.mark.skipif(not {"native-avx2", "native-avx512"} <= set(BUILT), reason="only one fused width runs here")
@given(cases())
@settings(max_examples=40)
def test_policies_with_wider_vectors_give_bit_identical_results(case: Case) -> None:
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
def test_policies_with_narrower_vectors_give_bit_identical_results(narrow: ctypes.CDLL, case: Case) -> None:
    assert _bits(case, narrow) == _bits(case, library.load("native-avx2"))


@pytest.mark.parametrize(
    "changes",
    [
        {"observation_width": 0},
        {"hidden": 0},
        {"head_sizes": (2, 0)},
        {"head_sizes": ()},
        {"dimensions": 1},
    ],
)
@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_an_invalid_network_shape_is_refused(changes: dict[str, Any], memory: str) -> None:
    shape = Shape(**{"observation_width": 3, "hidden": 8, "head_sizes": (2,), "memory": memory} | changes)
    with pytest.raises(ValueError, match="refuses"):
        NativePolicy(shape, RngPath(0), library.load(BUILT[0]))


@pytest.mark.parametrize(
    "changes",
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
        lambda batch: {"values": batch.values.astype(np.float32)},
        lambda batch: {"memory": batch.memory[:1].copy()},
    ],
)
def test_arrays_of_another_shape_are_refused_before_any_computation(changes: Callable[[Any], dict[str, Any]]) -> None:
    _, policy = networks(_HEADS, 5)
    batch = batch_of(_CASE)
    weights_before = policy._flat.tobytes()
    broken_batch = replace(batch, **changes(batch))
    with pytest.raises(ValueError, match=_REFUSED):
        policy.evaluate(broken_batch)
    invalid_calls = [
        (broken_batch, [0, 1, 2, 3, 4]),
        (batch, [-1]),
        (batch, [5]),
        (batch, []),
    ]  # sequences that are not there
    for given_batch, sequences in invalid_calls:
        with pytest.raises(ValueError, match=_REFUSED):
            policy.learn(given_batch, np.array(sequences, dtype=np.int64), RULE)
    assert policy._flat.tobytes() == weights_before
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
def test_a_step_with_arrays_of_another_shape_is_refused(
    rows: int, width: int, memory: int, writeable: bool, choices: int
) -> None:
    _, policy = networks(_HEADS, 5)
    state = np.zeros((2, rows, memory), np.float32)
    state.flags.writeable = writeable
    with pytest.raises(ValueError, match=_REFUSED):
        policy.decide(np.zeros((rows, width), np.float32), state, None, np.zeros((rows, choices)))


def test_choosing_heads_out_of_order_is_refused() -> None:
    """As the library itself sees it: before a step, out of order, twice, beyond the last one."""
    _, policy = networks(_HEADS, 5)
    actions = np.zeros((4, 2), np.int64)
    log_probs = np.zeros(4)
    state = np.zeros((2, 4, 8), np.float32)
    step = _Step(rows=4, actions=actions.ctypes.data, log_probs=log_probs.ctypes.data)

    def choose(first_head: int, count: int) -> int:
        return int(policy._library.esper_policy_choose(policy._handle, step, first_head, count, None))

    assert choose(0, 1) == choose(0, 2) == 3
    policy.values(np.zeros((4, 3), np.float32), state)
    calls = [(1, 1), (0, 3), (0, 0), (0, 1), (0, 1), (1, 1), (2, 1)]
    assert [choose(*call) for call in calls] == [3, 3, 3, 0, 3, 0, 3]
    assert (log_probs < 0.0).all()
    policy.evaluate(batch_of(_CASE))  # takes the step's place
    assert choose(0, 2) == 3
