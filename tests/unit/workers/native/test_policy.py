"""What the policy in C++ refuses, what it never looks at, and what its bits do not depend on."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from support.compiler import needs_compiler
from support.native_policy import BUILT, RULE, Case, Fixed, batch_of, cases, near, needs_library, networks

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Shape
from workers.native import build, library
from workers.native.policy import NativePolicy, _Step

pytestmark = needs_library
_HEADS = Shape(observation_width=3, hidden=8, head_sizes=(3, 2))
_REFUSED = "refuses|in one piece|cannot be written"
_CASE = Case(_HEADS, 4, 5, memory=True, ragged=True, masked=True, key=5)


@given(cases())
@settings(max_examples=30)
def test_a_row_has_the_same_bits_alone_and_in_a_batch(case: Case) -> None:
    """Decisions on every row, and the evaluation of a whole sequence."""
    _, policy = networks(case.shape, case.key)
    batch, rng = batch_of(case), np.random.default_rng(case.key)
    uniforms, seen = rng.random(batch.actions.shape[1:]), batch.observations[0]

    def decided(rows: slice, memory: np.ndarray) -> list[list[bytes]]:
        masks = None if batch.masks is None else Fixed(batch.masks[0, rows], case.shape)
        found = policy.decide(seen[rows], memory, masks, uniforms[rows])
        return [[one.tobytes() for one in part] for part in found if part is not None]

    state = rng.standard_normal((2, case.sequences, case.shape.hidden)).astype(np.float32)
    together = state.copy()
    whole = decided(slice(None), together)
    for row in range(case.sequences):
        one, alone = slice(row, row + 1), state[:, row : row + 1].copy()
        assert decided(one, alone) == [part[one] for part in whole]
        assert alone.tobytes() == together[:, one].tobytes()
    of_first = batch.valid & (np.arange(case.sequences) == 0)
    first, every = policy.evaluate(replace(batch, valid=of_first)), policy.evaluate(batch)
    assert [part.tobytes() for part in first] == [part[of_first[batch.valid]].tobytes() for part in every]


@given(cases())
@settings(max_examples=30)
def test_what_comes_after_the_last_valid_step_is_not_looked_at(case: Case) -> None:
    (_, policy), (_, other) = (networks(case.shape, case.key) for _ in range(2))
    batch = near(batch_of(replace(case, ragged=True)), policy, case.key)
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
    batch, every = batch_of(case), np.arange(case.sequences)
    rng, state = np.random.default_rng(case.key), np.zeros((2, case.sequences, case.shape.hidden), np.float32)
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


@pytest.mark.parametrize("wrong", [
    {"observation_width": 0}, {"hidden": 0}, {"head_sizes": (2, 0)}, {"head_sizes": ()}, {"dimensions": 1},
])  # fmt: skip
@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_a_network_that_cannot_be_is_refused(wrong: dict[str, Any], memory: str) -> None:
    shape = Shape(**{"observation_width": 3, "hidden": 8, "head_sizes": (2,), "memory": memory} | wrong)
    with pytest.raises(ValueError, match="refuses"):
        NativePolicy(shape, RngPath(0), library.load(BUILT[0]))


@pytest.mark.parametrize("named", [
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
])  # fmt: skip
def test_arrays_that_do_not_fit_are_refused_before_any_work(named: Callable[[Any], dict[str, Any]]) -> None:
    _, policy = networks(_HEADS, 5)
    batch, before = batch_of(_CASE), policy._flat.tobytes()
    broken = replace(batch, **named(batch))
    with pytest.raises(ValueError, match=_REFUSED):
        policy.evaluate(broken)
    with pytest.raises(ValueError, match=_REFUSED):
        policy.learn(broken, np.arange(5), RULE)
    assert policy._flat.tobytes() == before
    assert policy.steps == 0


@pytest.mark.parametrize("sequences", [[-1], [5], []])
def test_sequences_that_are_not_there_are_refused(sequences: list[int]) -> None:
    _, policy = networks(_HEADS, 5)
    with pytest.raises(ValueError, match=_REFUSED):
        policy.learn(batch_of(_CASE), np.array(sequences, dtype=np.int64), RULE)


@pytest.mark.parametrize(("rows", "width", "memory", "writeable", "choices"), [
    (0, 3, 8, True, 2), (2, 4, 8, True, 2), (2, 3, 7, True, 2), (2, 3, 8, False, 2), (2, 3, 8, True, 1),
])  # fmt: skip
def test_a_step_that_does_not_fit_is_refused(rows: int, width: int, memory: int, writeable: bool, choices: int) -> None:
    _, policy = networks(_HEADS, 5)
    state = np.zeros((2, rows, memory), np.float32)
    state.flags.writeable = writeable
    with pytest.raises(ValueError, match=_REFUSED):
        policy.decide(np.zeros((rows, width), np.float32), state, None, np.zeros((rows, choices)))


def test_heads_are_chosen_in_order_and_once() -> None:
    """As the library itself sees it: before a step, out of order, twice, beyond the last one."""
    _, policy = networks(_HEADS, 5)
    actions, log_probs, state = np.zeros((4, 2), np.int64), np.zeros(4), np.zeros((2, 4, 8), np.float32)
    step = _Step(rows=4, actions=actions.ctypes.data, log_probs=log_probs.ctypes.data)

    def choose(first: int, count: int) -> int:
        return int(policy._library.esper_policy_choose(policy._handle, step, first, count, None))

    assert choose(0, 1) == choose(0, 2) == 3
    policy.values(np.zeros((4, 3), np.float32), state)
    assert [choose(1, 1), choose(0, 3), choose(0, 0), choose(0, 1), choose(0, 1), choose(1, 1), choose(2, 1)] == [
        3, 3, 3, 0, 3, 0, 3,
    ]
    assert (log_probs < 0.0).all()
    policy.evaluate(batch_of(_CASE))  # takes the step's place
    assert choose(0, 2) == 3
