"""The constants on which returns depend, alternatives of rewards, and the search for a behaviour."""

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
    pbrs_flag = 1.0 if settings.disable_pbrs else 0.0
    return np.array([settings.rent_weight, float(settings.early_prune_threshold), pbrs_flag])


def test_only_constants_that_change_returns_are_listed() -> None:
    variations = varied(RewardSettings(), returns_of)
    listed_variations = [
        (variation.constant, variation.was, variation.now, variation.returns) for variation in variations
    ]
    assert sorted(listed_variations) == [
        ("disable_pbrs", "false", "true", (0.5, 5.0, 1.0)),
        ("early_prune_threshold", "5", "10", (0.5, 10.0, 0.0)),
        ("early_prune_threshold", "5", "2", (0.5, 2.0, 0.0)),
        ("max_rent", "8", "16", ()),
        ("rent_weight", "0.5", "0.25", (0.25, 5.0, 0.0)),
        ("rent_weight", "0.5", "1", (1.0, 5.0, 0.0)),
    ]


def test_each_alternative_reward_changes_one_constant() -> None:
    settings = RewardSettings()
    alternatives_seen = set()
    for name, value, changed_settings in alternatives(settings):
        changed_fields = [
            field
            for field in settings.__struct_fields__
            if getattr(changed_settings, field) != getattr(settings, field)
        ]
        assert changed_fields == [name]
        assert getattr(changed_settings, name) == value
        assert (name, value) not in alternatives_seen
        alternatives_seen.add((name, value))
    assert set(settings.__struct_fields__) - {name for name, _ in alternatives_seen} == {
        "mode",
        "params",
        "family",
        "gamma",
    }


OFFERED = Behaviours(("early", "mid", "late"))
PATH = run_path(3, 0) / "search"


def earliest(behaviours: Sequence[Behaviour]) -> Floats:
    """Best with one seed at the first step."""
    return np.array([-sum(life.step for life in behaviour.lives) for behaviour in behaviours], dtype=np.float64)


def started(count: int) -> list[tuple[Behaviour, float]]:
    behaviours = [OFFERED.draw(f"random {n}", (run_path(3, 0) / n).generator()) for n in range(count)]
    return list(zip(behaviours, earliest(behaviours).tolist(), strict=True))


def test_the_search_improves_with_the_number_of_tries() -> None:
    start = started(6)
    top = max(score for _, score in start)
    assert search(OFFERED, start, 0, PATH, earliest)[1] == top
    scores = [search(OFFERED, start, tries, PATH, earliest)[1] for tries in (8, 40, 120)]
    assert scores == sorted(scores)
    assert scores[-1] > top
    assert scores[-1] >= -2


def test_the_search_makes_the_allowed_number_of_tries() -> None:
    graded_behaviours: list[Behaviour] = []

    def grade(behaviours: Sequence[Behaviour]) -> Floats:
        graded_behaviours.extend(behaviours)
        return np.zeros(len(behaviours))

    start = started(3)
    best_behaviour, score = search(OFFERED, [(behaviour, 1.0) for behaviour, _ in start], 13, PATH, grade)
    assert [behaviour.name for behaviour in graded_behaviours] == [f"search {n + 1}" for n in range(13)]
    assert (best_behaviour, score) == (start[0][0], 1.0)  # of equal scores the first
