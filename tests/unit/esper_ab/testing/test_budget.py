"""The budget of an assertion: waves of seeds until seeds or minutes are used up."""

from types import SimpleNamespace

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.testing import budget
from esper_ab.testing.budget import Budget


class Clock:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(budget, "time", clock)
    return clock


def plan(lanes: int, duration_s: float):
    """What a budget reads of a plan."""
    part = SimpleNamespace(plan=SimpleNamespace(lanes=range(lanes)), cost=SimpleNamespace(duration_s=duration_s))
    return SimpleNamespace(parts=(part,))


def looks(asked: Budget) -> list[int]:
    seeds = [6]
    while then := asked.next_look(seeds[-1]):
        seeds.append(then)
    return seeds[1:]


@pytest.mark.parametrize(
    ("lanes", "expected"), [(1, [8, 10, 13, 17, 20]), (4, [10, 14, 18, 20]), (6, [12, 18, 20]), (64, [20])]
)
def test_looks_fill_the_lanes_and_end_at_the_seeds(lanes, expected, clock):
    asked = Budget("assert_learns", 20, None)
    asked.begin_first_look(plan(lanes, 1e9))
    assert looks(asked) == expected
    assert asked.used() == "All 20 seeds are used"


def test_a_look_that_would_end_after_the_minutes_is_not_begun(clock):
    """A wave of two takes 30 s, so the three waves of the first look take 90 s, and a fourth fits into 2 minutes."""
    asked = Budget("assert_learns", 20, 2)
    asked.begin_first_look(plan(2, 90.0))
    clock.now_s += 90.0
    assert asked.next_look(6) == 8
    clock.now_s += 29.0
    assert asked.next_look(8) == 0
    assert asked.used() == "No time is left for further runs (minutes=2)"


def test_a_first_look_that_takes_too_long_is_refused_before_it_begins(clock):
    asked = Budget("assert_learns", 20, 2)
    clock.now_s += 60.0  # the rehearsal
    with pytest.raises(UsageError, match=r"assert_learns: minutes=2: the first 6 runs take about 61 s, which is more"):
        asked.begin_first_look(plan(2, 61.0))


@pytest.mark.parametrize(("seeds", "minutes"), [(5, None), (True, None), ("20", None), (20, 0), (20, "1"), (20, True)])
def test_what_is_no_budget_is_refused(seeds, minutes):
    with pytest.raises(UsageError, match=r"^assert_learns: (seeds|minutes)="):
        Budget("assert_learns", seeds, minutes)
