"""The configurations that a validation pass measures, and the contributions computed from them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from workers.kinds.growth.bank.configurations import contributions, plan_pass

activity = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(lambda shape: arrays(np.bool_, shape))


def expected_codes(active: np.ndarray) -> set[int]:
    """Real, all off, each off, only one on, only two on: spelt out for one environment."""
    n_slots = len(active)
    active_slots = [slot for slot in range(n_slots) if active[slot]]
    inactive_code = sum(1 << slot for slot in range(n_slots) if not active[slot])
    slot_choices = [
        active_slots,
        [],
        *([s for s in active_slots if s != ablated_slot] for ablated_slot in active_slots),
        *([s] for s in active_slots),
        *itertools.combinations(active_slots, 2),
    ]
    return {inactive_code + sum(1 << slot for slot in slots) for slots in slot_choices}


@given(activity)
def test_every_environment_is_measured_once_in_every_configuration(active: np.ndarray) -> None:
    plan = plan_pass(active, ablate=True)
    codes: dict[int, list[int]] = {}
    for key in plan.keys.tolist():
        codes.setdefault(key >> plan.n_slots, []).append(key & ((1 << plan.n_slots) - 1))
    for env, row in enumerate(active):
        assert len(codes[env]) == len(set(codes[env]))
        assert set(codes[env]) == expected_codes(row)


@given(activity)
def test_each_row_is_computed_from_a_row_with_the_same_earlier_slots(active: np.ndarray) -> None:
    plan = plan_pass(active, ablate=True)
    env = np.arange(len(active))
    history = [()] * len(active)
    for step in plan.slots:
        assert np.array_equal(step.env, env[step.parent])
        history = [(*history[p], bool(bit)) for p, bit in zip(step.parent, step.on, strict=True)]
        assert len(set(zip(step.env.tolist(), history, strict=True))) == len(history)  # nothing is computed twice
        env = step.env
    codes = [sum(1 << s for s, bit in enumerate(bits) if bit) for bits in history]
    assert plan.keys.tolist() == [(e << plan.n_slots) | code for e, code in zip(env.tolist(), codes, strict=True)]


@given(activity)
def test_a_pass_without_ablations_measures_only_the_real_networks(active: np.ndarray) -> None:
    plan = plan_pass(active, ablate=False)
    assert np.array_equal(plan.real_rows(), np.arange(len(active)))
    assert not any(step.widens for step in plan.slots)


def test_the_contributions_of_seed_modules_equal_those_computed_by_hand() -> None:
    active = np.array([[True, True, False], [False, False, False], [True, True, True]])
    plan = plan_pass(active, ablate=True)
    table = {  # (environment, slots that are on): accuracy
        (0, 0b111): 80.0,
        (0, 0b110): 70.0,
        (0, 0b101): 65.0,
        (0, 0b100): 40.0,
        (1, 0b111): 33.0,
        (2, 0b111): 90.0,
        (2, 0b110): 80.0,
        (2, 0b101): 85.0,
        (2, 0b011): 89.0,
        (2, 0b001): 60.0,
        (2, 0b010): 50.0,
        (2, 0b100): 45.0,
        (2, 0b000): 40.0,
    }
    accuracy = np.array([table[key >> 3, key & 7] for key in plan.keys.tolist()])
    contribution, all_off_accuracy, interaction = contributions(active, accuracy, plan)
    assert contribution[0].tolist()[:2] == [10.0, 15.0]
    assert np.isnan(contribution[0, 2])
    assert np.isnan(contribution[1]).all()
    assert contribution[2].tolist() == [10.0, 5.0, 1.0]
    assert all_off_accuracy.tolist() == [40.0, 33.0, 40.0]
    # Pairs alone: {0,1}: 89-60-50+40 = 19; {0,2}: 85-60-45+40 = 20; {1,2}: 80-50-45+40 = 25.
    assert interaction[2].tolist() == [39.0, 44.0, 45.0]
    assert interaction[0].tolist() == pytest.approx([80 - 65 - 70 + 40, 80 - 65 - 70 + 40, 0.0])
