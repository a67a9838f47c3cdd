"""Questions of a reward audit."""

from pathlib import Path

from esper_ab.contracts import catalog
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.reward_audit import make_question


def assign(key: str, value: object) -> Assignment:
    return Assignment(key, value, key, Path(), is_text=False)


def test_a_reward_audit_without_names_covers_every_reward_mode() -> None:
    question = make_question(rewards=(), assignments=[assign("reward.rent_weight", 2.0)])
    assert [reward.name for reward in question.rewards] == list(catalog.names("workers.kinds.growth.rewards"))
    assert {reward.settings.rent_weight for reward in question.rewards} == {2.0}
    assert question.arithmetic is None
