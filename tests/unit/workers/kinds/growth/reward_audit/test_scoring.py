"""Which constants are listed: those on which a return depends, and those that a reward refuses."""

from collections.abc import Sequence

import numpy as np

from esper_ab.contracts.rng import run_path
from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.datasets.behaviour import Behaviour, Behaviours
from workers.kinds.growth.facts import Floats
from workers.kinds.growth.reward_audit.scoring import alternatives, search, varied


def returns_of(settings: RewardSettings) -> Floats:
    if settings.max_rent > 8:
        raise ValueError("too dear")
    switched = 1.0 if settings.disable_pbrs else 0.0
    return np.array([settings.rent_weight, float(settings.early_prune_threshold), switched])


def test_only_what_matters_is_listed_with_what_it_was() -> None:
    found = varied(RewardSettings(), returns_of)
    listed = [(one.constant, one.was, one.now, one.returns) for one in found]
    assert sorted(listed) == [
        ("disable_pbrs", "false", "true", (0.5, 5.0, 1.0)),
        ("early_prune_threshold", "5", "10", (0.5, 10.0, 0.0)),
        ("early_prune_threshold", "5", "2", (0.5, 2.0, 0.0)),
        ("max_rent", "8", "16", ()),
        ("rent_weight", "0.5", "0.25", (0.25, 5.0, 0.0)),
        ("rent_weight", "0.5", "1", (1.0, 5.0, 0.0)),
    ]


def test_every_constant_but_the_mode_is_tried_once_per_value_and_alone() -> None:
    settings = RewardSettings()
    seen = set()
    for name, value, changed in alternatives(settings):
        altered = [field for field in settings.__struct_fields__ if getattr(changed, field) != getattr(settings, field)]
        assert altered == [name]
        assert getattr(changed, name) == value
        assert (name, value) not in seen
        seen.add((name, value))
    assert set(settings.__struct_fields__) - {name for name, _ in seen} == {"mode", "params", "family", "gamma"}


OFFERED = Behaviours(("early", "mid", "late"))
PATH = run_path(3, 0) / "search"


def earliest(behaviours: Sequence[Behaviour]) -> Floats:
    """Best with one seed at the first step."""
    return np.array([-sum(life.step for life in one.lives) for one in behaviours], dtype=np.float64)


def started(count: int) -> list[tuple[Behaviour, float]]:
    drawn = [OFFERED.draw(f"random {n}", (run_path(3, 0) / n).generator()) for n in range(count)]
    return list(zip(drawn, earliest(drawn).tolist(), strict=True))


def test_it_climbs_and_never_falls_behind_its_start() -> None:
    start = started(6)
    top = max(score for _, score in start)
    assert search(OFFERED, start, 0, PATH, earliest)[1] == top
    found = [search(OFFERED, start, tries, PATH, earliest)[1] for tries in (8, 40, 120)]
    assert found == sorted(found)
    assert found[-1] > top
    assert found[-1] >= -2


def test_it_tries_as_many_as_it_is_allowed() -> None:
    tried: list[Behaviour] = []

    def grade(behaviours: Sequence[Behaviour]) -> Floats:
        tried.extend(behaviours)
        return np.zeros(len(behaviours))

    start = started(3)
    found, score = search(OFFERED, [(one, 1.0) for one, _ in start], 13, PATH, grade)
    assert [one.name for one in tried] == [f"search {n + 1}" for n in range(13)]
    assert (found, score) == (start[0][0], 1.0)  # of equal scores the first
