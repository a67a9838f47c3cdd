"""The code of a user's: the same names and hashes from a plan and from the preflight that it was made of."""

import msgspec
from support.journals.synthetic import Shape, Synthetic
from support.plans.requests import machine

from esper_ab.contracts.machine import UserReward
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.plan.reward_code import code_of
from esper_ab.plan.user_code import sources_of_plan, sources_of_rewards, sources_on

TRAINER = TrainerFacts(root="/home/me", files=("train.py",), sha256="a" * 64)
REWARD = UserReward(reference="my.py:reward", sha256="b" * 64, problem="")


def test_a_plan_has_the_sources_that_its_preflight_found():
    plan = Synthetic(groups={"mine": Shape(mode=REWARD.reference), "shaped": Shape()}).plan()
    blocks = tuple(
        msgspec.structs.replace(
            block, runs=tuple(msgspec.structs.replace(spec, reward_code=(code_of(REWARD),)) for spec in block.runs)
        )
        for block in plan.blocks
    )
    plan = msgspec.structs.replace(plan, trainer=TRAINER, blocks=blocks)
    assert sources_of_rewards(plan) == {"source of my.py:reward": "b" * 64}
    assert sources_of_plan(plan) == {"source of the trainer": "a" * 12, "source of my.py:reward": "b" * 64}
    assert sources_on(machine(trainer=TRAINER, user_rewards=(REWARD,))) == sources_of_plan(plan)


def test_a_plan_without_code_of_the_users_has_no_sources():
    assert sources_of_plan(Synthetic().plan()) == sources_on(machine()) == {}
