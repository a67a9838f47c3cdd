"""Start workers in waves: only a limited number are starting at a time, and the others wait for their turn."""

from hypothesis import given
from hypothesis import strategies as st

from esper_ab.control.rules.waves import Waves

# Waves: never more at once than allowed, everybody has a turn, in order, whatever ends in between.


LANES = st.integers(0, 9).map("cpu:{}".format)


@given(at_once=st.integers(1, 4), acts=st.lists(st.tuples(st.sampled_from(["ask", "over", "turns"]), LANES)))
def test_no_more_are_starting_than_may_and_every_turn_was_asked_for(at_once, acts):
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
            assert not waiting or len(starting) == at_once, "nobody waits for nothing"
        elif act == "ask":
            waves.ask(lane)
            starting.discard(lane)
            waiting = waiting if lane in waiting else [*waiting, lane]
        else:
            waves.over(lane)
            starting.discard(lane)
