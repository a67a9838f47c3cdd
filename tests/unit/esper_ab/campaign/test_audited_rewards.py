"""Reward audits that an experiment may include, and the parts that it keeps."""

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


def audited_rewards(*scored_rewards):
    audit = make_reward_audit(OUTCOMES, list(scored_rewards))
    return replace(audit, question=replace(audit.question, task="digits"))


def resolve_experiment(this_machine, *groups, **changes):
    return resolve(asked(*groups, **{"steps": STEPS, **changes}), this_machine, "x", 16)


def test_an_audit_keeps_the_rewards_of_learning_groups_in_their_order():
    this_machine = machine()
    scored_rewards = [make_scored(name, OUTCOMES) for name in ("minimal", "shaped", "sparse")]
    covered_rewards, notes = belonging(
        audited_rewards(*scored_rewards),
        resolve_experiment(this_machine, "wait", "sparse", "again=sparse", "shaped"),
        this_machine,
    )
    assert [score.reward.name for score in covered_rewards.answer.scored] == ["sparse", "shaped"]
    assert covered_rewards.question.rewards == tuple(score.reward for score in covered_rewards.answer.scored)
    assert notes == ()


def test_an_audit_does_not_cover_a_reward_with_other_constants():
    this_machine = machine()
    experiment = resolve_experiment(this_machine, "shaped", "dear=shaped", group=("dear:reward.rent_weight=1",))
    _, notes = belonging(audited_rewards(make_scored("shaped", OUTCOMES)), experiment, this_machine)
    assert notes == ("The reward audit does not cover dear.",)
    covered_rewards, _ = belonging(
        audited_rewards(make_scored("shaped", OUTCOMES, rent_weight=1.0)), experiment, this_machine
    )
    assert covered_rewards.answer.scored[0].reward.settings.rent_weight == 1


def test_a_user_reward_is_identified_by_its_code_in_any_folder():
    this_machine = machine(user_rewards=(UserReward(reference=MINE, sha256="abc", problem=""),))
    experiment = resolve_experiment(this_machine, f"mine={MINE}", "shaped")
    covered_rewards, _ = belonging(
        audited_rewards(make_scored("mine.py:reward", OUTCOMES, sha256="abc")), experiment, this_machine
    )
    assert [score.reward.name for score in covered_rewards.answer.scored] == ["mine.py:reward"]
    for name, sha256 in (("reward", "edited"), ("other", "abc")):
        with pytest.raises(UsageError, match="no group learns from an audited reward"):
            belonging(
                audited_rewards(make_scored(f"mine.py:{name}", OUTCOMES, sha256=sha256)), experiment, this_machine
            )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 7}, "steps was 4 and is 7"),
        ({"slots": ["early"]}, "slots was .*'early', 'mid', 'late'.* and is .*'early'"),
        ({"sets": ("growth.batch_size=32",)}, "growth.batch_size was 128 and is 32 in shaped"),
    ],
)
def test_a_reward_audit_with_other_hosts_is_refused(changes, words):
    """The reward audit named no slots, so it has all slots of the task."""
    this_machine = machine()
    audit = audited_rewards(make_scored("shaped", OUTCOMES))
    with pytest.raises(UsageError, match=words):
        belonging(audit, resolve_experiment(this_machine, "shaped", "sparse", **changes), this_machine)
