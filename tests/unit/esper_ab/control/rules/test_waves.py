"""Start workers in waves: a limited number start at a time, and the others wait in a queue."""

from hypothesis import given
from hypothesis import strategies as st

from esper_ab.control.rules.waves import Waves

LANES = st.integers(0, 9).map("cpu:{}".format)


@given(at_once=st.integers(1, 4), acts=st.lists(st.tuples(st.sampled_from(["ask", "over", "turns"]), LANES)))
def test_workers_start_in_waves_in_the_order_of_requests(at_once, acts):
    waves = Waves(at_once)
    waiting = []
    starting = set()
    for act, lane in acts:
        if act == "turns":
            turns = waves.turns()
            assert list(turns) == waiting[: len(turns)], "first come, first served"
            waiting = waiting[len(turns) :]
            starting |= set(turns)
            assert len(starting) <= at_once
            assert not waiting or len(starting) == at_once, "no worker waits without need"
        elif act == "ask":
            waves.ask(lane)
            starting.discard(lane)
            waiting = waiting if lane in waiting else [*waiting, lane]
        else:
            waves.over(lane)
            starting.discard(lane)
