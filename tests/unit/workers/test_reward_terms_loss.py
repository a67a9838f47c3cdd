"""The loss family, numbers by hand from its formula; the reference's own with the sign of the loss change turned."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reward_facts import NAN, make_facts

from esper_ab.contracts.settings import RewardSettings
from workers.rewards import shaped
from workers.vocabulary import Stage

SETTINGS = RewardSettings(family="loss")


def reward(chosen=SETTINGS, shape=(1, 1), **values):
    return shaped.reward(make_facts(shape, **values), chosen)


@pytest.mark.parametrize(
    ("loss_delta", "expected"),
    [
        (0.05, 2.5),  # half a standard deviation better
        (-0.05, -1.25),  # as much worse, at half price
        (10.0, 25.0),  # clipped at 5 standard deviations
        (-math.inf, -12.5),  # the reference gives this to +inf, its first step
        (NAN, 0.0),  # our first step
        (0.0, 0.0),
    ],
)
def test_a_falling_loss_earns(loss_delta, expected):
    assert reward(loss_delta=loss_delta)[0] == pytest.approx(expected)


@given(st.floats(1e-6, 1e3))
def test_sign(change):
    assert reward(loss_delta=change)[0] > 0 > reward(loss_delta=-change)[0]


def test_rent_on_parameters_added_is_capped():
    assert reward(total_params=2000)[0] == pytest.approx(-0.05 * math.log(2.0))
    assert reward(total_params=500)[0] == 0.0
    assert reward(host_params=0)[0] == 0.0
    assert reward(RewardSettings(family="loss", max_rent_penalty=0.01), total_params=2000)[0] == pytest.approx(-0.01)


def test_grace_ends_with_the_oldest_module():
    rent = -0.05 * math.log(2.0)
    no_bonus = RewardSettings(family="loss", disable_pbrs=True)
    values = {"chosen": no_bonus, "shape": (1, 2), "total_params": 2000, "stage": Stage.TRAINING}
    assert reward(present=[True, False], age=[2, 9], **values)[0] == 0.0
    assert reward(present=[True, False], age=[3, 0], **values)[0] == pytest.approx(rent)
    assert reward(present=[True, True], age=[2, 9], **values)[0] == pytest.approx(rent)
    assert reward(present=False, **values)[0] == pytest.approx(rent)


def test_stage_bonus_is_summed_over_slots():
    values = {
        "shape": (1, 2),
        "present": True,
        "stage": [Stage.HOLDING, Stage.GERMINATED],
        "previous_stage": [Stage.BLENDING, Stage.DORMANT],
    }
    assert reward(**values)[0] == pytest.approx(0.1 * (0.995 * 5.5 - 3.5) + 0.1 * 0.995)
    assert reward(RewardSettings(family="loss", disable_pbrs=True), **values)[0] == 0.0


def test_terminal():
    def last(chosen=SETTINGS):
        return shaped.reward(make_facts((4, 1), 25, val_loss=[2.3, 1.3, 0.1, 9.0]), chosen)

    np.testing.assert_allclose(last(), [0.0, 0.5, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(last(RewardSettings(family="loss", target_loss=2.3)), 1.0)
    np.testing.assert_allclose(last(RewardSettings(family="loss", disable_terminal_reward=True)), 0.0)
