"""Signals of training: signed improvements, plateaus, stabilisation, and the summary seed module."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.kinds.growth.rules.seeds import SeedTable
from workers.kinds.growth.rules.tracker import HISTORY, Measurement, Signals, summary_seed
from workers.kinds.growth.vocabulary import Stage


def reading(loss: list[float], acc: list[float]) -> Measurement:
    shape = (len(loss), 1)
    return Measurement(
        train_loss=np.array(loss) + 0.1,
        train_acc=np.array(acc) + 1.0,
        val_loss=np.array(loss),
        val_acc=np.array(acc),
        all_off_acc=np.array(acc),
        contribution=np.full(shape, np.nan),
        interaction_sum=np.zeros(shape),
        finite=np.ones(shape[0], dtype=bool),
    )


def follow(losses: list[float], accs: list[float]) -> Signals:
    signals = Signals.unknown(1)
    for loss, acc in zip(losses, accs, strict=True):
        signals = signals.after(reading([loss], [acc]), np.ones(1, dtype=bool))
    return signals


def test_a_falling_loss_is_a_positive_improvement() -> None:
    first_signals = follow([2.0], [30.0])
    signals = follow([2.0, 1.5], [30.0, 33.0])
    assert np.isnan((first_signals.loss_delta, first_signals.acc_delta)).all()
    assert first_signals.plateau_epochs[0] == 0
    assert (signals.loss_delta[0], signals.acc_delta[0]) == (0.5, 3.0)
    assert (signals.train_loss[0], signals.train_acc[0]) == (1.6, 34.0)


@pytest.mark.parametrize(
    ("accs", "plateau"), [([30, 30.4, 30.8], 2), ([30, 30.4, 30.9], 0), ([30, 29], 1), ([30, 30.5], 0)]
)
def test_the_plateau_counts_epochs_with_less_than_half_a_point(accs: list[float], plateau: int) -> None:
    assert follow([2.0] * len(accs), accs).plateau_epochs[0] == plateau


@pytest.mark.parametrize(
    ("losses", "latched"),
    [
        ([2.0, 1.99, 1.98, 1.97], True),
        ([2.0, 1.99, 1.98], False),
        ([2.0, 2.0, 2.0, 2.0], True),
        ([2.0, 1.99, 1.98, 1.99, 1.98, 1.97], False),  # got worse once
        ([2.0, 1.99, 1.98, 1.9, 1.89, 1.88], False),  # improved by more than 3 % once
        ([2.0, 1.99, 1.98, 1.97, 5.0, 1.0], True),  # never unlatches
    ],
)
def test_three_small_improvements_stabilise_a_host_permanently(losses: list[float], latched: bool) -> None:
    assert follow(losses, [30.0] * len(losses)).stabilized[0] == latched


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=12))
def test_the_tracker_keeps_recent_histories_and_best_values(accs: list[float]) -> None:
    losses = [5.0 - acc / 50 for acc in accs]
    signals = follow(losses, accs)
    padding = [np.nan] * (HISTORY - len(accs))
    for history, values in ((signals.acc_history, accs), (signals.loss_history, losses)):
        np.testing.assert_array_equal(history[0], [*padding, *values[-HISTORY:]])
    assert (signals.best_val_acc[0], signals.best_val_loss[0]) == (max(accs), min(losses))


def test_a_stopped_environment_keeps_its_signals() -> None:
    first_signals = Signals.unknown(2).after(reading([2.0, 2.0], [30.0, 30.0]), np.ones(2, dtype=bool))
    signals = first_signals.after(reading([np.nan, 1.0], [np.nan, 40.0]), np.array([False, True]))
    assert signals.val_acc.tolist() == [30.0, 40.0]
    assert signals.acc_history[:, -1].tolist() == [30.0, 40.0]
    assert signals.acc_history[1, -2] == 30.0


@pytest.mark.parametrize(
    ("stage", "alpha", "contribution", "serial", "expected"),
    [
        ((4, 6, 3), (1, 0.1, 1), (-9, 5, -9), (2, 0, 1), 1),  # highest stage
        ((4, 4, 4), (0.2, 0.5, 0.7), (-9, -9, 5), (2, 1, 0), 2),  # then highest alpha
        ((4, 4, 4), (0.5, 0.5, 0.5), (1, -2, 3), (2, 0, 1), 1),  # then most negative contribution
        ((4, 4, 3), (0.5, 0.5, 1), (np.nan, 8, 0), (2, 0, 1), 1),  # an unmeasured one loses
        ((4, 4, 4), (0.5, 0.5, 0.5), (1, 1, 1), (0, 5, 1), 1),  # then the youngest
        ((1, 9, 1), (0, 0, 0), (np.nan,) * 3, (-1, 3, -1), -1),  # nobody
        ((3, 9, 1), (0, 0, 0), (np.nan,) * 3, (0, 3, -1), 0),  # a cooling slot holds nobody
    ],
)
def test_the_summary_seed_module_has_the_highest_rank(
    stage: tuple, alpha: tuple, contribution: tuple, serial: tuple, expected: int
) -> None:
    table = SeedTable.empty(1, 3)
    table.stage[0], table.alpha[0], table.contribution[0], table.serial[0] = stage, alpha, contribution, serial
    assert summary_seed(table, table.present).tolist() == [expected]
    order = [2, 0, 1]
    shuffled_table = SeedTable(**{name: array[:, order] for name, array in vars(table).items()})
    shuffled_slot = summary_seed(shuffled_table, shuffled_table.present)[0]
    assert (order[shuffled_slot] if shuffled_slot >= 0 else -1) == expected


def test_the_summary_seed_module_is_eligible() -> None:
    table = SeedTable.empty(1, 3)
    table.stage[0] = (Stage.FOSSILIZED, Stage.TRAINING, Stage.DORMANT)
    live_seeds = table.present & (table.stage != Stage.FOSSILIZED)
    assert summary_seed(table, live_seeds).tolist() == [1]
