"""What may be asked of a reward audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from esper_ab.contracts import catalog
from esper_ab.contracts.errors import UsageError
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.reward_audit import make_question


def assigned(key: str, value: object) -> Assignment:
    return Assignment(key, value, key, Path(), is_text=False)


def test_without_names_every_mode_is_asked_for_and_constants_are_those_of_all() -> None:
    question = make_question(rewards=(), assignments=[assigned("reward.rent_weight", 2.0)])
    assert [one.name for one in question.rewards] == list(catalog.names("workers.rewards"))
    assert {one.settings.rent_weight for one in question.rewards} == {2.0}
    assert question.arithmetic is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 1}, "`int` >= 2 - at `$.steps`"),
        ({"hosts": 1.5}, "Expected `int`, got `float` - at `$.hosts`"),
        ({"slots": [1]}, r"Expected `str`, got `int` - at `$.slots"),
        ({"kernel": "cuda"}, "no kernel 'cuda'; known: auto, torch"),
        ({"task": "digit"}, "no task 'digit'; did you mean digits"),
        ({"rewards": ("sparse", "sparse")}, "'sparse' is named twice"),
        ({"assignments": [assigned("ppo.lr", 1.0)]}, "this is not a reward or growth setting"),
        ({"assignments": [assigned("reward.mode", "sparse")]}, "name rewards as arguments"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        make_question(**{"rewards": (), "assignments": (), **changes})  # type: ignore[arg-type]
    assert words in str(refused.value)
