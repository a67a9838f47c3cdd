"""Which reward audit an experiment may include, and what of it."""

import pytest
from msgspec.structs import replace
from support.plans.requests import asked, machine
from support.rewards.audited_rewards import STEPS, make_reward_audit, make_scored

from esper_ab.campaign.audited_rewards import belonging
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import UserReward
from esper_ab.settings.resolve import resolve

OUTCOMES = [1.0, 2.0, 3.0]
MINE = "/home/me/mine.py:reward"


def audited_rewards(*scored):
    found = make_reward_audit(OUTCOMES, list(scored))
    return replace(found, question=replace(found.question, task="digits"))


def resolved(there, *groups, **changes):
    return resolve(asked(*groups, **{"steps": STEPS, **changes}), there, "x", 16)


def test_rewards_of_the_learning_groups_are_kept_in_their_order():
    there = machine()
    scored = [make_scored(name, OUTCOMES) for name in ("minimal", "shaped", "sparse")]
    own, notes = belonging(audited_rewards(*scored), resolved(there, "wait", "sparse", "again=sparse", "shaped"), there)
    assert [one.reward.name for one in own.answer.scored] == ["sparse", "shaped"]
    assert own.question.rewards == tuple(one.reward for one in own.answer.scored)
    assert notes == ()


def test_other_constants_are_another_reward():
    there = machine()
    experiment = resolved(there, "shaped", "dear=shaped", group=("dear:reward.rent_weight=1",))
    _, notes = belonging(audited_rewards(make_scored("shaped", OUTCOMES)), experiment, there)
    assert notes == ("The reward audit does not cover dear.",)
    own, _ = belonging(audited_rewards(make_scored("shaped", OUTCOMES, rent_weight=1.0)), experiment, there)
    assert own.answer.scored[0].reward.settings.rent_weight == 1


def test_a_user_reward_is_known_by_its_code_wherever_the_file_lies():
    there = machine(user_rewards=(UserReward(reference=MINE, sha256="abc", problem=""),))
    experiment = resolved(there, f"mine={MINE}", "shaped")
    own, _ = belonging(audited_rewards(make_scored("mine.py:reward", OUTCOMES, sha256="abc")), experiment, there)
    assert [one.reward.name for one in own.answer.scored] == ["mine.py:reward"]
    for name, sha256 in (("reward", "edited"), ("other", "abc")):
        with pytest.raises(UsageError, match="no group learns from an audited reward"):
            belonging(audited_rewards(make_scored(f"mine.py:{name}", OUTCOMES, sha256=sha256)), experiment, there)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 7}, "steps was 4 and is 7"),
        ({"slots": ["early"]}, "slots was .*'early', 'mid', 'late'.* and is .*'early'"),
        ({"sets": ("growth.batch_size=32",)}, "growth.batch_size was 128 and is 32 in shaped"),
    ],
)
def test_hosts_have_to_be_the_same(changes, words):
    """Also where the reward audit asked for no slots by name, which are then all of the task."""
    there = machine()
    found = audited_rewards(make_scored("shaped", OUTCOMES))
    with pytest.raises(UsageError, match=words):
        belonging(found, resolved(there, "shaped", "sparse", **changes), there)
