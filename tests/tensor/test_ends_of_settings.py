"""Every number that a setting admits can be trained with: tried at the ends of its range, by its own declaration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from support.tensor_world import make_session

from esper_ab.contracts.settings import GroupSettings


def ends() -> Iterator[tuple[str, str, float]]:
    """(part, key, value): closed ends; 2^63 - 1 is only the largest number of a message."""
    for part in msgspec.inspect.type_info(GroupSettings).fields:  # type: ignore[attr-defined]
        for field in part.type.fields:
            for end in (getattr(field.type, "ge", None), getattr(field.type, "le", None)):
                if end is not None and end < 2**63 - 1:
                    yield part.encode_name, field.encode_name, end


@pytest.mark.parametrize(("part", "key", "value"), list(ends()))
def test_an_episode_and_its_update_at_the_end_of_a_setting(part: str, key: str, value: float) -> None:
    session = make_session(steps=3, episodes=1)
    changed: Any = msgspec.structs.replace(getattr(session.spec.settings, part), **{key: value})
    settings = msgspec.structs.replace(session.spec.settings, **{part: changed})
    session = type(session)(msgspec.structs.replace(session.spec, settings=settings), session._task, session._data)
    record = session.train(0, lambda _step: None, lambda _step: None)
    assert record.ppo is not None
    assert all(env.steps > 0 for env in record.envs)
