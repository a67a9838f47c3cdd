"""Descriptions of the initial biases of policies."""

from esper_ab.contracts.settings import ControllerSettings, GroupSettings, PolicySettings
from esper_ab.kinds.growth.policy_bias import UNIFORM, start, starts
from esper_ab.settings.experiment import Group

ZEROS = {name: 0.0 for name in PolicySettings.__struct_fields__ if name.startswith("bias_")}


def test_the_initial_policy_is_described_by_its_biases():
    assert start(PolicySettings(**ZEROS)) == UNIFORM
    assert start(PolicySettings(**{**ZEROS, "bias_prune": -3.0, "bias_advance": 0.5})) == "prune -3, advance +0.5"


def test_learning_groups_are_listed_by_their_initial_biases():
    settings = GroupSettings(policy=PolicySettings(**ZEROS))
    biased_settings = GroupSettings(policy=PolicySettings(**{**ZEROS, "bias_wait": -1.0}))
    fixed_settings = GroupSettings(controller=ControllerSettings(name="wait"))
    groups = [
        Group(name=n, settings=s)
        for n, s in zip("abcd", (settings, biased_settings, fixed_settings, settings), strict=True)
    ]
    assert starts(groups) == {UNIFORM: ["a", "d"], "wait -1": ["b"]}
