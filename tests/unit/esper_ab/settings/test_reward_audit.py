"""What may be asked of a reward audit."""

from pathlib import Path

from esper_ab.contracts import catalog
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.reward_audit import make_question


def assigned(key: str, value: object) -> Assignment:
    return Assignment(key, value, key, Path(), is_text=False)


def test_without_names_every_mode_is_asked_for_and_constants_are_those_of_all() -> None:
    question = make_question(rewards=(), assignments=[assigned("reward.rent_weight", 2.0)])
    assert [one.name for one in question.rewards] == list(catalog.names("workers.kinds.growth.rewards"))
    assert {one.settings.rent_weight for one in question.rewards} == {2.0}
    assert question.arithmetic is None
