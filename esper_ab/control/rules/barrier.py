"""The barrier of one block: functions that take the events of the runs and return the runs to release.

A run passes the milestones 0 (warm), 1 … E (episodes recorded) and E+1 (evaluated). It *arrives* at a milestone when
its work up to there is recorded, and is *released* from it when it may work towards the next. The mode says which runs
wait for which:

- lockstep: a milestone opens for all runs once all have arrived at it;
- independent: each run is released from a milestone as soon as it arrives;
- alternate: as in lockstep, but one run works at a time: in start order, and in the reverse order after odd milestones;
- sequence: once all are warm, one run after the other goes all the way, in start order.

Repeated and late arrivals change nothing, so a journal can be folded into a state any number of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Mode = Literal["lockstep", "independent", "alternate", "sequence"]
BEFORE_START = -1  # has reached no milestone, and was released from none


class ReleaseRuns(msgspec.Struct, frozen=True):
    """Releases these runs from `milestone`; at the last milestone they are done."""

    milestone: int
    runs: tuple[str, ...]


class Position(msgspec.Struct, frozen=True):
    """Position of one run. While `released == arrived`, it works towards the next milestone (or warms up before 0)."""

    arrived: int = BEFORE_START
    released: int = BEFORE_START
    dead: bool = False


class BarrierState(msgspec.Struct, frozen=True):
    """Positions of the runs of a block."""

    mode: Mode
    last: int  # E+1
    positions: dict[str, Position]  # by run, in start order

    @property
    def open(self) -> int:
        """The last milestone at which every run has arrived."""
        return min(at.arrived for at in self.positions.values())

    @property
    def done(self) -> bool:
        return all(at.released == self.last for at in self.positions.values())


Advanced = tuple[BarrierState, tuple[ReleaseRuns, ...]]  # the new state, and the releases that follow


def begin(mode: Mode, runs: tuple[str, ...], last: int) -> BarrierState:
    """Return the barrier of a block before any run has arrived."""
    return BarrierState(mode, last, dict.fromkeys(runs, Position()))


def arrived(state: BarrierState, run: str, milestone: int) -> Advanced:
    """Note that the run's work up to `milestone` is recorded.

    Raises ValueError if the run was not released that far.
    """
    at = state.positions[run]
    if milestone <= at.arrived:
        return state, ()
    if milestone > min(at.released + 1, state.last):
        raise ValueError(f"{run} arrived at milestone {milestone} but was released from {at.released}")
    return _moved(state, run, msgspec.structs.replace(at, arrived=milestone))


def died(state: BarrierState, run: str, recorded: int, released: int) -> Advanced:
    """Note that the run's worker is gone.

    The run falls back to its last record; the other runs continue until they have to wait for it.

    `recorded`: the run's last recorded milestone. `released`: the last milestone from which the run was ever released,
    according to the records.
    """
    at = state.positions[run]
    if at.dead:
        return state, ()
    return _moved(state, run, Position(recorded, max(at.released, min(released, recorded)), dead=True))


def rejoined(state: BarrierState, run: str, milestone: int) -> Advanced:
    """Note that a new worker continues the run from `milestone`, a checkpoint at or before the run's last arrival.

    Raises ValueError for a milestone that the run never reached.
    """
    at = state.positions[run]
    if milestone > at.arrived:
        raise ValueError(f"{run} cannot return to milestone {milestone}: it only reached {at.arrived}")
    return _moved(state, run, Position(milestone, max(BEFORE_START, min(at.released, milestone - 1))))


def restore(state: BarrierState, stood: Mapping[str, tuple[int, int]]) -> Advanced:
    """Return `state` with its runs at the positions `stood`, and the releases that follow.

    `state`: a barrier before any arrival. `stood`: by run, the last milestone at which it arrived, and the last one
    from which it was released. A run with work left counts as dead until it has rejoined; a run that has arrived at the
    end needs no worker.
    """
    positions = {
        run: Position(arrived=arrived, released=min(released, arrived), dead=arrived < state.last)
        for run, (arrived, released) in stood.items()
    }
    return _release_due(msgspec.structs.replace(state, positions=positions))


def working(state: BarrierState) -> tuple[str, ...]:
    """Return the runs on their way to their next milestone."""
    return tuple(run for run, at in state.positions.items() if _works(state, at) and not at.dead)


def _moved(state: BarrierState, run: str, at: Position) -> Advanced:
    return _release_due(msgspec.structs.replace(state, positions=state.positions | {run: at}))


def _release_due(state: BarrierState) -> Advanced:
    """Release all runs that are due. In the modes alternate and sequence, one run must stop before the next starts."""
    commands: list[ReleaseRuns] = []
    while due := _due(state):
        milestone = state.positions[due[0]].arrived
        freed = dict.fromkeys(due, Position(milestone, milestone))
        state = msgspec.structs.replace(state, positions=state.positions | freed)
        commands.append(ReleaseRuns(milestone, due))
    return state, tuple(commands)


def _due(state: BarrierState) -> tuple[str, ...]:
    """Return the runs to release now, which are all at the same milestone."""
    if state.mode == "sequence":
        return _next_in_sequence(state)
    waiting = [run for run, at in state.positions.items() if at.released < at.arrived and not at.dead]
    if state.mode == "independent":
        return tuple(waiting)
    opened = state.open
    due = tuple(run for run in waiting if state.positions[run].arrived == opened)
    return _next_in_turn(state, due) if state.mode == "alternate" else due


def _next_in_turn(state: BarrierState, due: tuple[str, ...]) -> tuple[str, ...]:
    """Return the run of `due` whose turn it is, if no run is working; else none."""
    if any(_works(state, at) for at in state.positions.values()):
        return ()
    in_turn = due if state.open % 2 == 0 else due[::-1]
    return in_turn[:1]


def _next_in_sequence(state: BarrierState) -> tuple[str, ...]:
    """Return the first run that is not done, if no run is working, all are warm and its worker is alive; else none."""
    if state.open == BEFORE_START or any(_works(state, at) for at in state.positions.values()):
        return ()
    first = [run for run, at in state.positions.items() if at.released < state.last][:1]
    return tuple(run for run in first if not state.positions[run].dead)


def _works(state: BarrierState, at: Position) -> bool:
    return at.released == at.arrived < state.last
