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
        return min(position.arrived for position in self.positions.values())

    @property
    def done(self) -> bool:
        return all(position.released == self.last for position in self.positions.values())


Advanced = tuple[BarrierState, tuple[ReleaseRuns, ...]]  # the new state, and the releases that follow


def begin(mode: Mode, runs: tuple[str, ...], last_milestone: int) -> BarrierState:
    """Return the barrier of a block before any run has arrived."""
    return BarrierState(mode, last_milestone, dict.fromkeys(runs, Position()))


def arrived(state: BarrierState, run: str, milestone: int) -> Advanced:
    """Note that the run's work up to `milestone` is recorded.

    Raises ValueError if the run was not released that far.
    """
    position = state.positions[run]
    if milestone <= position.arrived:
        return state, ()
    if milestone > min(position.released + 1, state.last):
        raise ValueError(f"{run} arrived at milestone {milestone} but was released from {position.released}")
    return _moved(state, run, msgspec.structs.replace(position, arrived=milestone))


def died(state: BarrierState, run: str, recorded_milestone: int, released_milestone: int) -> Advanced:
    """Note that the run's worker is gone.

    The run falls back to its last record; the other runs continue until they have to wait for it.

    `recorded_milestone`: the run's last recorded milestone. `released_milestone`: the last milestone from which the run
    was ever released, according to the records.
    """
    position = state.positions[run]
    if position.dead:
        return state, ()
    return _moved(
        state,
        run,
        Position(recorded_milestone, max(position.released, min(released_milestone, recorded_milestone)), dead=True),
    )


def rejoined(state: BarrierState, run: str, milestone: int) -> Advanced:
    """Note that a new worker continues the run from `milestone`, a checkpoint at or before the run's last arrival.

    Raises ValueError for a milestone that the run never reached.
    """
    position = state.positions[run]
    if milestone > position.arrived:
        raise ValueError(f"{run} cannot return to milestone {milestone}: it only reached {position.arrived}")
    return _moved(state, run, Position(milestone, max(BEFORE_START, min(position.released, milestone - 1))))


def restore(state: BarrierState, restored_positions: Mapping[str, tuple[int, int]]) -> Advanced:
    """Return `state` with its runs at the positions `restored_positions`, and the releases that follow.

    `state`: a barrier before any arrival. `restored_positions`: by run, the last milestone at which it arrived, and the
    last one from which it was released. A run with work left counts as dead until it has rejoined; a run that has
    arrived at the end needs no worker.
    """
    positions = {
        run: Position(
            arrived=arrived_milestone,
            released=min(released_milestone, arrived_milestone),
            dead=arrived_milestone < state.last,
        )
        for run, (arrived_milestone, released_milestone) in restored_positions.items()
    }
    return _release_due(msgspec.structs.replace(state, positions=positions))


def working(state: BarrierState) -> tuple[str, ...]:
    """Return the runs on their way to their next milestone."""
    return tuple(run for run, position in state.positions.items() if _works(state, position) and not position.dead)


def _moved(state: BarrierState, run: str, position: Position) -> Advanced:
    return _release_due(msgspec.structs.replace(state, positions=state.positions | {run: position}))


def _release_due(state: BarrierState) -> Advanced:
    """Release all runs that are due. In the modes alternate and sequence, one run must stop before the next starts."""
    commands: list[ReleaseRuns] = []
    while due_runs := _due(state):
        milestone = state.positions[due_runs[0]].arrived
        freed_positions = dict.fromkeys(due_runs, Position(milestone, milestone))
        state = msgspec.structs.replace(state, positions=state.positions | freed_positions)
        commands.append(ReleaseRuns(milestone, due_runs))
    return state, tuple(commands)


def _due(state: BarrierState) -> tuple[str, ...]:
    """Return the runs to release now, which are all at the same milestone."""
    if state.mode == "sequence":
        return _next_in_sequence(state)
    waiting_runs = [
        run for run, position in state.positions.items() if position.released < position.arrived and not position.dead
    ]
    if state.mode == "independent":
        return tuple(waiting_runs)
    open_milestone = state.open
    due_runs = tuple(run for run in waiting_runs if state.positions[run].arrived == open_milestone)
    return _next_in_turn(state, due_runs) if state.mode == "alternate" else due_runs


def _next_in_turn(state: BarrierState, due_runs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the run of `due_runs` whose turn it is, if no run is working; else none."""
    if any(_works(state, position) for position in state.positions.values()):
        return ()
    runs_in_turn = due_runs if state.open % 2 == 0 else due_runs[::-1]
    return runs_in_turn[:1]


def _next_in_sequence(state: BarrierState) -> tuple[str, ...]:
    """Return the first run that is not done, if no run is working, all are warm and its worker is alive; else none."""
    if state.open == BEFORE_START or any(_works(state, position) for position in state.positions.values()):
        return ()
    first_runs = [run for run, position in state.positions.items() if position.released < state.last][:1]
    return tuple(run for run in first_runs if not state.positions[run].dead)


def _works(state: BarrierState, position: Position) -> bool:
    return position.released == position.arrived < state.last
