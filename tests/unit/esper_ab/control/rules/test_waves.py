"""Waves: never more at once than allowed, everybody has a turn, in order, whatever ends in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from esper_ab.control.rules.waves import AT_ONCE, Waves

LANES = st.integers(0, 9).map("cpu:{}".format)


@given(at_once=st.integers(1, 4), acts=st.lists(st.tuples(st.sampled_from(["ask", "over", "turns"]), LANES)))
def test_no_more_are_starting_than_may_and_every_turn_was_asked_for(at_once, acts):
    waves, waiting, starting = Waves(at_once), [], set()
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


@given(lanes=st.integers(0, 40), at_once=st.integers(1, 7))
def test_everybody_is_started_when_those_before_have_started(lanes, at_once):
    waves, order = Waves(at_once), [f"cpu:{n}" for n in range(lanes)]
    for lane in order:
        waves.ask(lane)
    began = []
    while turns := waves.turns():
        began += turns
        for lane in turns:
            waves.over(lane)
    assert began == order


def test_a_wave_is_smaller_than_what_a_listening_socket_and_a_limit_of_start_up_can_take():
    """Ten thousand whose start takes as long as importing torch does, 5 s, have started within five minutes."""
    assert 10_000 / AT_ONCE * 5 < 300
