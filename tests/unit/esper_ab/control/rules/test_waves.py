"""Start workers in waves: a limited number start at a time, and the others wait in a queue."""

from hypothesis import given
from hypothesis import strategies as st

from esper_ab.control.rules.waves import Waves

LANES = st.integers(0, 9).map("cpu:{}".format)


@given(start_limit=st.integers(1, 4), acts=st.lists(st.tuples(st.sampled_from(["ask", "over", "turns"]), LANES)))
def test_workers_start_in_waves_in_the_order_of_requests(start_limit, acts):
    waves = Waves(start_limit)
    waiting_workers = []
    starting_workers = set()
    for act, lane in acts:
        if act == "turns":
            turns = waves.turns()
            assert list(turns) == waiting_workers[: len(turns)], "first come, first served"
            waiting_workers = waiting_workers[len(turns) :]
            starting_workers |= set(turns)
            assert len(starting_workers) <= start_limit
            assert not waiting_workers or len(starting_workers) == start_limit, "no worker waits without need"
        elif act == "ask":
            waves.ask(lane)
            starting_workers.discard(lane)
            waiting_workers = waiting_workers if lane in waiting_workers else [*waiting_workers, lane]
        else:
            waves.over(lane)
            starting_workers.discard(lane)
