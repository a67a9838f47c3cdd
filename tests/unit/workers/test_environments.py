"""Times of an episode's phases."""

import time

import pytest

from workers.environments import Stopwatch


def test_a_lap_of_the_stopwatch_has_only_the_times_of_its_phases() -> None:
    stopwatch = Stopwatch()
    for _ in range(100):
        with stopwatch.phase("train"):
            sum(range(1000))
    with pytest.raises(ZeroDivisionError), stopwatch.phase("update"):
        sum(range(1000)) / 0
    begin_s = time.monotonic()
    timing = stopwatch.lap()
    assert timing.train_s > 0.0
    assert timing.update_s > 0.0
    assert timing.train_s + timing.update_s <= timing.total_s
    assert timing.validate_s == timing.decide_s == 0.0
    next_timing = stopwatch.lap()
    assert next_timing.train_s == next_timing.update_s == 0.0
    assert next_timing.total_s <= time.monotonic() - begin_s
