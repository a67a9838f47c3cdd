"""Alpha ramps against known values, and the table of stage transitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.kinds.growth.rules import seeds
from workers.kinds.growth.rules.seeds import TRANSITIONS, AlphaMode, IllegalTransition, SeedTable, slot_of, transition
from workers.kinds.growth.vocabulary import Curve, Stage

ONE = np.ones((1, 1), dtype=bool)
RAMPS = [
    (Curve.LINEAR, 5, [0.2, 0.4, 0.6, 0.8, 1.0]),
    (Curve.COSINE, 5, [0.095, 0.345, 0.655, 0.905, 1.0]),
    (Curve.SIGMOID, 5, [0.024, 0.230, 0.770, 0.976, 1.0]),
    (Curve.SIGMOID, 3, [0.117, 0.883, 1.0]),
    (Curve.SIGMOID, 8, [0.009, 0.045, 0.181, 0.5, 0.819, 0.955, 0.991, 1.0]),
]


ALPHAS = st.sampled_from([0.0, 0.5, 0.7, 1.0])


def ramp(start: float, target: float, steps: int, curve: int) -> tuple[SeedTable, list[float]]:
    table = SeedTable.empty(1, 1)
    table.alpha[:] = start
    seeds.retarget(table, ONE, np.full((1, 1), target), np.full((1, 1), steps), np.full((1, 1), curve))
    values = []
    while table.alpha_mode[0, 0] != AlphaMode.HOLD:
        reached = seeds.tick(table, ONE)
        values.append(float(table.alpha[0, 0]))
        assert reached[0, 0] == (len(values) == steps)
    return table, values


@pytest.mark.parametrize(("curve", "steps", "expected"), RAMPS)
def test_a_ramp_has_the_values_of_its_curve(curve: Curve, steps: int, expected: list[float]) -> None:
    assert ramp(0.0, 1.0, steps, curve)[1] == pytest.approx(expected, abs=6e-4)


@given(ALPHAS, ALPHAS, st.sampled_from([0, 3, 5, 8]), st.sampled_from(Curve))
def test_ramps_are_monotone(start: float, target: float, steps: int, curve: Curve) -> None:
    table, values = ramp(start, target, steps, curve)
    path = np.array([start, *values])
    assert table.alpha[0, 0] == table.alpha_target[0, 0] == target
    assert len(values) == (0 if start == target else steps)
    assert (np.diff(path) * np.sign(target - start) >= 0.0).all()


def test_only_a_constant_alpha_can_be_retargeted() -> None:
    table = SeedTable.empty(1, 1)
    full_alpha = np.ones((1, 1))
    steps = np.full((1, 1), 3)
    curve = np.zeros((1, 1), dtype=np.int64)
    seeds.retarget(table, ONE, full_alpha, steps, curve)
    with pytest.raises(ValueError, match="in progress"):
        seeds.retarget(table, ONE, full_alpha, steps, curve)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        seeds.retarget(SeedTable.empty(1, 1), ONE, full_alpha * 1.1, steps, curve)


@pytest.mark.parametrize("source", Stage)
@pytest.mark.parametrize("target", Stage)
def test_a_transition_outside_the_table_is_refused(source: Stage, target: Stage) -> None:
    table = SeedTable.empty(1, 2)
    table.stage[0, 1] = source
    table.epochs_in_stage[0, 1] = 4
    selected_slots = np.array([[False, True]])
    if target in TRANSITIONS[source]:
        transition(table, selected_slots, target, np.array([30.0]))
        assert table.stage[0].tolist() == [Stage.DORMANT, target]
        assert (table.previous_stage[0, 1], table.previous_epochs_in_stage[0, 1]) == (source, 4)
        assert (table.epochs_in_stage[0, 1], table.acc_at_stage_start[0, 1]) == (0, 30.0)
    else:
        with pytest.raises(IllegalTransition, match="slot 1"):
            transition(table, selected_slots, target, np.array([30.0]))
        assert table.stage[0].tolist() == [Stage.DORMANT, source]


def test_the_transition_graph_has_the_documented_edges() -> None:
    edges = {int(source): sorted(int(t) for t in targets) for source, targets in TRANSITIONS.items()}
    assert edges == {0: [1], 1: [2], 2: [3, 8], 3: [4, 8], 4: [6, 8], 6: [4, 7, 8], 7: [], 8: [9], 9: [10], 10: [1]}


def test_a_serial_number_in_two_slots_is_refused() -> None:
    table = SeedTable.empty(1, 3)
    table.stage[0, :2] = Stage.TRAINING
    table.serial[0] = [3, 4, -1]
    assert slot_of(table, np.array([4])).tolist() == [1]
    assert slot_of(table, np.array([9])).tolist() == [-1]
    table.serial[0, 0] = 4
    with pytest.raises(ValueError, match="e0s4"):
        slot_of(table, np.array([4]))
