"""What figures are drawn from: shares of stages, quantiles, places of points."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.journals import records_of
from support.synthetic import Synthetic

from esper_ab.journal.fold import fold
from esper_ab.report.figures.curves import _middle_half
from esper_ab.report.figures.kinds.growth import shares
from esper_ab.report.figures.outcome import spread


def test_shares_of_stages_follow_the_events_of_a_slot():
    """Of one host with three slots: germinated at 2, training at 5, fossilised at 9; all before is empty."""
    run = fold(Synthetic(replicates=2, episodes=1, n_envs=1).events()).of_group("shaped")[0]
    record = records_of(run)[0]
    template = record.seed_events[0]
    events = tuple(
        msgspec.structs.replace(template, step=step, stage=stage)
        for step, stage in ((2, "GERMINATED"), (5, "TRAINING"), (5, "BLENDING"), (9, "FOSSILIZED"))
    )
    run.episodes[0] = msgspec.structs.replace(record, seed_events=events)
    fossilised, _, blending, training, germinated, _ = shares([run], ("early", "mid", "late"), [1, 2, 4, 5, 8, 9, 25])
    third = pytest.approx(100 / 3)
    assert germinated == [0, third, third, 0, 0, 0, 0]
    assert training == [0] * 7
    assert blending == [0, 0, 0, third, third, 0, 0]
    assert fossilised == [0, 0, 0, 0, 0, third, third]


@given(st.lists(st.floats(0, 100), min_size=4, max_size=40))
def test_the_middle_half_is_between_the_quartiles_as_numpy_has_them(values):
    ((episode, *quarters),) = _middle_half([np.array([[1.0, value]]) for value in values], 10)
    assert episode == 1.0
    assert quarters == pytest.approx(np.quantile(values, (0.25, 0.75)), abs=1e-9)


@given(st.lists(st.floats(0, 100), max_size=40))
def test_spread_keeps_every_value_and_stays_in_its_row(values):
    placed = spread(values, 1.0)
    assert sorted(value for value, _ in placed) == sorted(values)
    assert all(abs(lift) <= 0.3 for _, lift in placed)
