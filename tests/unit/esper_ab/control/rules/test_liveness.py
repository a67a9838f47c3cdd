"""Liveness of workers, with the time as an argument."""

import math
from itertools import accumulate
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.control.rules.limits import Limits
from esper_ab.control.rules.liveness import Laggard, Liveness, Sign

LIMITS = Limits(floor_s=60.0, start_up_s=300.0, factor=5.0, pause_s=10.0)
TRAIN = Sign(phase="train", run_name="a/0", step=3)


def late_workers(liveness, start, end):
    """Return the first second at which workers are late, and these; None if none is until `end`."""
    while start <= end:
        if laggards := liveness.late(start):
            return start, laggards
        start += 1.0
    return None


@pytest.mark.parametrize(("step_s", "grace_s"), [(0.0, 300.0), (2.0, 300.0), (441.0, 4410.0)])
def test_the_grace_period_grows_with_the_steps_of_the_plan(step_s, grace_s):
    deadline, (laggard,) = late_workers(signing_worker(LIMITS.of_steps(step_s), Sign(phase="warm-up")), 0.0, 5000.0)
    assert deadline == grace_s + 1.0
    assert laggard == Laggard(worker="w00/1", last=Sign(phase="warm-up"), silent_s=deadline, limit_s=grace_s)


@given(st.lists(st.floats(0.01, 200.0), min_size=1, max_size=20))
def test_the_limit_is_five_median_intervals_but_at_least_a_minute(intervals):
    times = [*accumulate(intervals, initial=0.0)]
    _, (laggard,) = late_workers(
        signing_worker(Limits(pause_s=math.inf), times=times), times[-1], times[-1] + 5 * 200 + 2
    )
    assert laggard.limit_s == pytest.approx(max(60.0, 5 * median(intervals)))
    assert laggard.last == TRAIN


def signing_worker(limits=LIMITS, sign=TRAIN, times=(0.0,)):
    """Return the liveness of a worker that gave this sign at these times."""
    liveness = Liveness(limits, 0.0)
    for time in times:
        liveness.sign("w00/1", sign, time)
    return liveness


def test_the_pace_of_one_worker_sets_the_limit_for_all_workers():
    liveness = signing_worker(times=(0.0, 1.0))
    liveness.rest("w00/1", 2.0)
    liveness.sign("w01/1", TRAIN, 2.0)
    deadline, (laggard,) = late_workers(liveness, 2.0, 100.0)
    assert (deadline, laggard.worker) == (63.0, "w01/1")


@pytest.mark.parametrize("phase", ["start-up", "assigned", "warm-up"])
def test_a_one_time_phase_has_the_whole_grace_period(phase):
    liveness = signing_worker(sign=Sign(phase=phase))
    liveness.sign("w01/1", Sign(phase=phase), 0.0)
    liveness.rest("w00/1", 1.0)
    deadline, _ = late_workers(liveness, 1.0, 400.0)
    assert deadline == 301.0


def test_no_worker_is_ended_for_a_pause_of_the_coordinator():
    liveness = signing_worker(sign=Sign(phase="start-up"))
    assert liveness.late(1.0) == ()
    assert liveness.late(100_000.0) == ()
    deadline, _ = late_workers(liveness, 100_000.0, 101_000.0)
    assert deadline == 100_300.0


def test_an_interval_cut_short_by_a_loss_does_not_affect_the_pace():
    limits = Limits(floor_s=1.0, start_up_s=300.0, factor=5.0, pause_s=math.inf)
    liveness = signing_worker(limits, times=(0.0, 10.0))  # the phase takes ten seconds
    liveness.forget("w00/1")
    assert liveness.late(1000.0) == ()
    liveness.sign("w01/1", TRAIN, 1000.0)
    deadline, _ = late_workers(liveness, 1000.0, 1100.0)
    assert deadline == 1051.0


@given(st.floats(1.0, 50.0), st.sampled_from(["start-up", "assigned", "warm-up", "never seen"]))
def test_the_grace_period_of_a_one_time_phase_grows_with_crowding(crowding, phase):
    liveness = signing_worker(Limits(start_up_s=300.0, pause_s=math.inf), Sign(phase=phase))
    assert liveness.late(300.0 * crowding - 0.1, crowding) == ()
    (laggard,) = liveness.late(300.0 * crowding + 0.1, crowding)
    assert laggard.limit_s == 300.0 * crowding
    assert liveness.silence("w00/1", 1.0).limit_s == laggard.limit_s, "a stop names the limit that holds"


def test_the_limit_of_a_phase_with_a_known_pace_ignores_crowding():
    liveness = signing_worker(Limits(start_up_s=300.0, pause_s=math.inf), times=(0.0, 10.0, 20.0, 30.0))
    assert liveness.late(91.0, 20.0)


def test_idle_workers_on_other_nodes_are_pinged():
    """A loss is known within a minute: a ping after 20 s, 40 s for the answer; a worker with new work owes no pong."""
    liveness = Liveness(Limits(pause_s=math.inf).across_nodes(), 0.0)
    for worker in ("answers", "lost", "works"):
        liveness.rest(worker, 100.0)
    assert liveness.ping(119.0) == ()
    assert set(liveness.ping(120.0)) == {"answers", "lost", "works"}
    assert liveness.last("lost") is None, "it is at rest"
    liveness.pong("answers", 121.0)
    liveness.sign("works", Sign(phase="released"), 122.0)
    liveness.pong("works", 123.0)
    assert liveness.late(160.0) == ()
    assert [laggard.worker for laggard in liveness.late(160.5)] == ["lost"]
    assert liveness.ping(160.5) == ("answers",)


def test_idle_workers_on_one_machine_are_not_pinged():
    liveness = Liveness(LIMITS, 0.0)
    liveness.rest("w00/1", 0.0)
    assert liveness.ping(1e9) == ()
