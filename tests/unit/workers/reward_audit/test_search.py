"""The search over behaviours, on scores that cost nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esper_ab.contracts.rng import run_path
from workers.datasets.behaviour import Behaviour, growing
from workers.facts import Floats
from workers.reward_audit.search import search

OFFERED = growing(("early", "mid", "late"))
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


def test_a_positive_multiple_of_the_score_finds_the_same() -> None:
    start = started(5)
    doubled = [(one, 2 * score) for one, score in start]
    one, _ = search(OFFERED, start, 24, PATH, earliest)
    other, _ = search(OFFERED, doubled, 24, PATH, lambda behaviours: 2 * earliest(behaviours))
    assert one == other
