"""Liveness with time passed in."""

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
    """First second at which somebody is late, with who; None if nobody is until `end`."""
    while start <= end:
        if late := liveness.late(start):
            return start, late
        start += 1.0
    return None


@pytest.mark.parametrize(("step_s", "grace_s"), [(0.0, 300.0), (2.0, 300.0), (441.0, 4410.0)])
def test_the_grace_grows_with_the_steps_of_the_plan(step_s, grace_s):
    at, (laggard,) = late_workers(alive(LIMITS.of_steps(step_s), Sign(phase="warm-up")), 0.0, 5000.0)
    assert at == grace_s + 1.0
    assert laggard == Laggard(worker="w00/1", last=Sign(phase="warm-up"), silent_s=at, limit_s=grace_s)


@given(st.lists(st.floats(0.01, 200.0), min_size=1, max_size=20))
def test_the_limit_is_five_median_intervals_of_the_phase_but_a_minute_at_least(intervals):
    at = [*accumulate(intervals, initial=0.0)]
    _, (laggard,) = late_workers(alive(Limits(pause_s=math.inf), at=at), at[-1], at[-1] + 5 * 200 + 2)
    assert laggard.limit_s == pytest.approx(max(60.0, 5 * median(intervals)))
    assert laggard.last == TRAIN


def alive(limits=LIMITS, sign=TRAIN, at=(0.0,)):
    """The liveness of a worker that has given this sign at these times."""
    liveness = Liveness(limits, 0.0)
    for time in at:
        liveness.sign("w00/1", sign, time)
    return liveness


def test_what_one_worker_shows_counts_for_all():
    liveness = alive(at=(0.0, 1.0))
    liveness.rest("w00/1", 2.0)
    liveness.sign("w01/1", TRAIN, 2.0)
    at, (laggard,) = late_workers(liveness, 2.0, 100.0)
    assert (at, laggard.worker) == (63.0, "w01/1")


@pytest.mark.parametrize("phase", ["start-up", "assigned", "warm-up"])
def test_what_is_done_once_has_the_grace_however_quick_others_were(phase):
    liveness = alive(sign=Sign(phase=phase))
    liveness.sign("w01/1", Sign(phase=phase), 0.0)
    liveness.rest("w00/1", 1.0)
    at, _ = late_workers(liveness, 1.0, 400.0)
    assert at == 301.0


def test_a_suspended_coordinator_blames_nobody_for_its_own_pause():
    liveness = alive(sign=Sign(phase="start-up"))
    assert liveness.late(1.0) == ()
    assert liveness.late(100_000.0) == ()
    at, _ = late_workers(liveness, 100_000.0, 101_000.0)
    assert at == 100_300.0


def test_what_a_lost_worker_was_in_the_middle_of_says_nothing_about_pace():
    limits = Limits(floor_s=1.0, start_up_s=300.0, factor=5.0, pause_s=math.inf)
    liveness = alive(limits, at=(0.0, 10.0))  # the phase takes ten seconds
    liveness.forget("w00/1")
    assert liveness.late(1000.0) == ()
    liveness.sign("w01/1", TRAIN, 1000.0)
    at, _ = late_workers(liveness, 1000.0, 1100.0)
    assert at == 1051.0


@given(st.floats(1.0, 50.0), st.sampled_from(["start-up", "assigned", "warm-up", "never seen"]))
def test_what_is_done_once_may_take_as_many_times_longer_as_the_machine_is_crowded(crowding, phase):
    liveness = alive(Limits(start_up_s=300.0, pause_s=math.inf), Sign(phase=phase))
    assert liveness.late(300.0 * crowding - 0.1, crowding) == ()
    (laggard,) = liveness.late(300.0 * crowding + 0.1, crowding)
    assert laggard.limit_s == 300.0 * crowding
    assert liveness.silence("w00/1", 1.0).limit_s == laggard.limit_s, "a stop names the limit that holds"


def test_a_phase_whose_pace_is_known_has_its_limit_by_that():
    liveness = alive(Limits(start_up_s=300.0, pause_s=math.inf), at=(0.0, 10.0, 20.0, 30.0))
    assert liveness.late(91.0, 20.0)


def test_one_at_rest_is_asked_where_nothing_else_would_tell_of_its_loss():
    """Known within a minute: 20 s until it is asked, 40 s for the answer; who is given work meanwhile owes that."""
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


def test_on_one_machine_nobody_is_asked():
    liveness = Liveness(LIMITS, 0.0)
    liveness.rest("w00/1", 0.0)
    assert liveness.ping(1e9) == ()
