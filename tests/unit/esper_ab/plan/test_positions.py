"""Device and start order can matter unless records are a function of rng paths; the plan follows from that."""

from __future__ import annotations

import msgspec
import pytest
from support.asking import experiment, group, machine, planned

from esper_ab.contracts.machine import UserReward
from esper_ab.contracts.settings import RewardSettings
from esper_ab.plan.positions import positions_could_matter_by
from esper_ab.settings.experiment import AskedArithmetic
from esper_ab.settings.resolve import resolve

MINE = "mine.py:reward"
USER = UserReward(reference=MINE, sha256="0" * 64, problem="")
UNEQUAL = msgspec.structs.replace(
    machine(), devices=tuple(msgspec.structs.replace(one, title=one.name) for one in machine().devices)
)


@pytest.mark.parametrize(
    ("changes", "there", "because"),
    [
        ({}, machine(), ""),
        ({"groups": (group("a"), group("b", reward=RewardSettings(mode=MINE)))}, machine(user_rewards=(USER,)),
         "the reward mine.py:reward is no entry of the catalogue"),
        ({}, machine(gpus=2), "cuda:0 is no CPU core"),
        ({"devices": ("cpu:0", "cpu:1")}, machine(gpus=2), ""),
        ({}, UNEQUAL, "cores are of different kinds"),
        ({"devices": ("cpu:0",), "placement": "share"}, UNEQUAL, ""),
        ({"arithmetic": AskedArithmetic(deterministic=False)}, machine(), "the arithmetic is not deterministic"),
        ({"share_observation_norm": True}, machine(), "the groups share a normaliser"),
    ],
)  # fmt: skip
def test_what_can_make_a_record_depend_on_its_place(changes, there, because):
    asked = experiment(**{"seeds": 10} | changes)
    assert positions_could_matter_by(resolve(asked, there, "x"), there) == because
    plan = planned(asked, there)
    assert plan.design.positions_matter is bool(because)
    assert plan.design.adjusted is bool(because)
    assert any("Device and start order cannot matter here" in note for note in plan.notes) is not bool(because)


def test_where_no_position_can_matter_none_is_refused_nor_called_unbalanced():
    """Every draw of orders will do, and as many sets of lanes as there are."""
    for rng_seed in range(12):
        shuffled = experiment(tuple("abcde"), seeds=6, order="shuffled", rng_seed=rng_seed)
        assert not planned(shuffled, machine(5)).design.adjusted
    fixed = planned(experiment(seeds=6, order="fixed"), machine())
    assert not any("no verdict can follow" in note for note in fixed.notes)
    assert any("that the order is fixed confounds nothing" in note for note in fixed.notes)
    loose = AskedArithmetic(deterministic=False)
    six = {"names": tuple("abcdef"), "seeds": 6}
    assert len(planned(experiment(**six, arithmetic=loose), machine(12)).lanes) == 6
    assert len(planned(experiment(**six), machine(12)).lanes) == 12
    odd = planned(experiment(seeds=7), machine())
    assert not any("not a multiple" in note for note in odd.notes)
