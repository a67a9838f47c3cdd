"""Every named, drawn or varied behaviour is a schedule that the controller can follow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.catalog import entry
from esper_ab.contracts.settings import DEFAULT_BLUEPRINTS
from workers.kinds.growth.controllers import schedule
from workers.kinds.growth.datasets.behaviour import Behaviour, Behaviours

SLOTS = [("only",), ("early", "late"), ("early", "mid", "late")]


def check_playable(behaviour: Behaviour, slots: tuple[str, ...]) -> None:
    """ValueError of the controller when it cannot be; of one slot there is one life at a time."""
    if behaviour.controller == "schedule":
        assert behaviour.lives
        schedule.make(behaviour.settings, slots, DEFAULT_BLUEPRINTS)
    else:
        assert entry("workers.kinds.growth.controllers", behaviour.controller, "make")(
            behaviour.settings, slots, DEFAULT_BLUEPRINTS
        )
    assert behaviour.description


@pytest.mark.parametrize("slots", SLOTS)
def test_all_reference_behaviours_can_be_played(slots: tuple[str, ...]) -> None:
    reference_behaviours = Behaviours(slots).reference
    assert len({behaviour.name for behaviour in reference_behaviours}) == len(reference_behaviours)
    if len(slots) > 1:  # "grow everything" and "one good seed" are one in one slot
        assert len({(behaviour.controller, behaviour.lives) for behaviour in reference_behaviours}) == len(
            reference_behaviours
        )
    for behaviour in reference_behaviours:
        check_playable(behaviour, slots)


@given(st.sampled_from(SLOTS), st.integers(0, 2**32 - 1))
def test_drawn_and_varied_behaviours_can_be_played(slots: tuple[str, ...], rng_seed: int) -> None:
    behaviours = Behaviours(slots)
    rng = np.random.default_rng(rng_seed)
    behaviour = behaviours.draw("drawn", rng)
    for turn in range(6):
        check_playable(behaviour, slots)
        slot_indices = [slots.index(life.slot) for life in behaviour.lives]
        assert slot_indices == sorted(set(slot_indices))
        assert all(life.end_step >= life.step + 2 for life in behaviour.lives)
        behaviour = behaviours.vary(f"varied {turn}", behaviour, rng)


def test_varied_behaviours_are_close_to_their_parent() -> None:
    behaviours = Behaviours(SLOTS[-1])
    rng = np.random.default_rng(0)
    parent = behaviours.draw("parent", rng)
    varied_lives = [behaviours.vary("child", parent, rng).lives for _ in range(100)]
    assert sum(lives != parent.lives for lives in varied_lives) > 60
    assert max(len(set(lives) ^ set(parent.lives)) for lives in varied_lives) <= 2
