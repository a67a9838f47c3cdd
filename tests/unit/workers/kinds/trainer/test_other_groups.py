"""Each further group is started once before any budget is spent."""

import pytest

from workers.kinds.trainer.idling import StillRunning
from workers.kinds.trainer.other_groups import TimeLimits, TriedGroups, try_other_groups

LIMITS = TimeLimits(run_s=20.0, total_s=60.0)


class Runs:
    """Runs that take a time by their group's setting, on a clock of their own; one at a time."""

    def __init__(self, failing=()):
        """`failing`: (group, number of the seed) of runs that fail at their end."""
        self.time = 0.0
        self.started = []
        self.failing = failing

    def now(self):
        return self.time

    def attempt(self, group, settings, seed_index, is_over):
        self.started.append(group)
        end = self.time + settings["takes_s"]
        while self.time < end:
            self.time += 1.0
            if is_over():
                raise StillRunning
        if (group, seed_index) in self.failing:
            raise ValueError("exit status 2: no such optimiser")


def tried(runs, groups):
    return try_other_groups(groups, runs.attempt, 1, LIMITS, runs.now)


def taking(*seconds):
    return {f"g{number}": {"takes_s": taken} for number, taken in enumerate(seconds)}


def test_every_group_but_the_first_is_started_once():
    runs = Runs()
    assert tried(runs, taking(5, 6, 7)) == TriedGroups(failed_once={}, ended_early=(), not_started=())
    assert runs.started == ["g1", "g2"]


def test_a_group_that_fails_with_two_seeds_is_named():
    runs = Runs(failing=(("g2", 0), ("g2", 1)))
    with pytest.raises(ValueError, match="group 'g2': exit status 2: no such optimiser"):
        tried(runs, taking(5, 6, 7, 8))
    assert runs.started == ["g1", "g2", "g2"], "the fourth would be in vain"


def test_a_group_that_fails_with_one_of_two_seeds_is_reported():
    tries = tried(Runs(failing=(("g1", 0),)), taking(5, 6, 7))
    assert tries == TriedGroups(failed_once={"g1": "exit status 2: no such optimiser"}, ended_early=(), not_started=())


def test_a_long_run_is_ended_and_named():
    runs = Runs()
    assert tried(runs, taking(5, 3600, 7)) == TriedGroups(failed_once={}, ended_early=("g1",), not_started=())
    assert runs.time == 27.0


def test_no_group_is_started_once_enough_time_has_passed():
    tries = tried(Runs(), taking(*range(1000, 1008)))
    assert tries == TriedGroups(failed_once={}, ended_early=("g1", "g2", "g3"), not_started=("g4", "g5", "g6", "g7"))


def test_equal_settings_are_tried_once():
    runs = Runs()
    tried(runs, {"a": {"takes_s": 1}, "same": {"takes_s": 1}, "b": {"takes_s": 2}, "c": {"takes_s": 2}})
    assert runs.started == ["b"]
