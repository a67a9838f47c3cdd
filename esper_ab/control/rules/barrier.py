"""The barrier of one block: events in, releases out.

A run passes the milestones 0 (warm), 1 … E (episodes recorded) and E+1 (evaluated). It *arrives* at a milestone when
what it did is recorded, and is *released* from it when it may work towards the next one. Who waits for whom is the
mode:

- lockstep: a milestone opens for all runs once all have arrived at it;
- independent: each run is released from wherever it arrives;
- alternate: as lockstep, but one run at a time works towards the next milestone, in the order given for that milestone;
- sequence: once all are warm, one run after the other goes all the way, in start order.

Repeated and late arrivals change nothing, so a journal may be folded into a state as often as one likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Mode = Literal["lockstep", "independent", "alternate", "sequence"]
BEFORE_START = -1  # arrived nowhere, released from nowhere


class Arrived(msgspec.Struct, frozen=True):
    """The run's work up to `milestone` is recorded."""

    run_name: str
    milestone: int


class Died(msgspec.Struct, frozen=True):
    """The run's worker is gone: the run stands where its records end, and the others go on until they need it."""

    run_name: str
    recorded: int  # the last milestone that is recorded of the run
    released: int  # the last milestone that any worker of the run was released from, as far as that is recorded


class Rejoined(msgspec.Struct, frozen=True):
    """A worker stands at `milestone` for the run again: a checkpoint of something it arrived at before."""

    run_name: str
    milestone: int


class ReleaseRuns(msgspec.Struct, frozen=True):
    """These runs may go on from `milestone`; at the last milestone: they are done."""

    milestone: int
    runs: tuple[str, ...]


BarrierEvent = Arrived | Died | Rejoined


class Position(msgspec.Struct, frozen=True):
    """Where one run stands.

    While `released == arrived` it works towards the next milestone; before milestone 0 it warms up.
    """

    arrived: int = BEFORE_START
    released: int = BEFORE_START
    dead: bool = False


class BarrierState(msgspec.Struct, frozen=True):
    """Where the runs of a block stand."""

    mode: Mode
    last: int  # E+1
    positions: dict[str, Position]  # by run, in start order
    turns: tuple[tuple[str, ...], ...]  # alternate: turns[p] is the order of work after milestone p < last; else empty

    @property
    def open(self) -> int:
        """The last milestone at which every run has arrived."""
        return min(at.arrived for at in self.positions.values())

    @property
    def done(self) -> bool:
        return all(at.released == self.last for at in self.positions.values())


def begin(mode: Mode, runs: tuple[str, ...], last: int, turns: tuple[tuple[str, ...], ...] = ()) -> BarrierState:
    """A block before its first arrival; ValueError unless `turns` orders all runs at every milestone but the last."""
    if mode == "alternate" and [sorted(turn) for turn in turns] != [sorted(runs)] * last:
        raise ValueError(f"alternate needs {last} orders of {', '.join(runs)}")
    return BarrierState(mode, last, dict.fromkeys(runs, Position()), turns)


def advance(state: BarrierState, event: BarrierEvent) -> tuple[BarrierState, tuple[ReleaseRuns, ...]]:
    """Return the state after `event`, and the releases that follow from it.

    ValueError for an arrival ahead of its release and for a return to a milestone never reached: no worker of ours does
    either, so nothing sensible follows from them.
    """
    at = state.positions[event.run_name]
    match event:
        case Arrived(run, milestone):
            if milestone <= at.arrived:
                return state, ()
            if milestone > min(at.released + 1, state.last):
                raise ValueError(f"{run} arrived at milestone {milestone} but was released from {at.released}")
            return _release_due(_moved(state, run, Position(arrived=milestone, released=at.released, dead=at.dead)))
        case Died(run, recorded, released):
            if at.dead:
                return state, ()
            before = max(at.released, min(released, recorded))
            return _release_due(_moved(state, run, Position(arrived=recorded, released=before, dead=True)))
        case Rejoined(run, milestone):
            if milestone > at.arrived:
                raise ValueError(f"{run} cannot return to milestone {milestone}: it got to {at.arrived}")
            before = max(BEFORE_START, min(at.released, milestone - 1))
            return _release_due(_moved(state, run, Position(arrived=milestone, released=before)))


def restore(state: BarrierState, stood: Mapping[str, tuple[int, int]]) -> tuple[BarrierState, tuple[ReleaseRuns, ...]]:
    """`state` before its first arrival, put where `stood` says: by run, the milestones arrived at and released from.

    Whoever has work left is gone until it has rejoined; whoever has arrived at the end needs no worker any more.
    """
    positions = {
        run: Position(arrived=arrived, released=min(released, arrived), dead=arrived < state.last)
        for run, (arrived, released) in stood.items()
    }
    return _release_due(msgspec.structs.replace(state, positions=positions))


def opens(state: BarrierState, release: ReleaseRuns) -> bool:
    """Whether this release begins the work after a milestone, rather than passing on the turn within it."""
    return (
        state.mode != "alternate"
        or release.milestone == state.last
        or release.runs[0] == state.turns[release.milestone][0]
    )


def working(state: BarrierState) -> tuple[str, ...]:
    """Runs on their way to their next milestone."""
    return tuple(run for run, at in state.positions.items() if _works(state, at) and not at.dead)


def _moved(state: BarrierState, run: str, at: Position) -> BarrierState:
    return msgspec.structs.replace(state, positions=state.positions | {run: at})


def _release_due(state: BarrierState) -> tuple[BarrierState, tuple[ReleaseRuns, ...]]:
    """Everything that is due now; in sequence the end of one run is the start of the next."""
    commands: list[ReleaseRuns] = []
    while due := _due(state):
        milestone = state.positions[due[0]].arrived
        freed = {run: Position(at.arrived, at.arrived) for run, at in state.positions.items() if run in due}
        state = msgspec.structs.replace(state, positions=state.positions | freed)
        commands.append(ReleaseRuns(milestone, due))
    return state, tuple(commands)


def _due(state: BarrierState) -> tuple[str, ...]:
    """Runs to be released now, which all stand at the same milestone."""
    if state.mode == "sequence":
        return _next_in_sequence(state)
    waiting = [run for run, at in state.positions.items() if at.released < at.arrived and not at.dead]
    if state.mode == "independent":
        return tuple(waiting)
    opened = state.open
    due = [run for run in waiting if state.positions[run].arrived == opened]
    if state.mode == "lockstep" or opened == state.last:
        return tuple(due)
    if any(_works(state, at) for at in state.positions.values()):
        return ()
    to_come = [run for run in state.turns[opened] if state.positions[run].released < opened]
    return tuple(run for run in to_come[:1] if run in due)


def _next_in_sequence(state: BarrierState) -> tuple[str, ...]:
    """The first run that is not done, if it waits; nobody goes before all are warm or past a run that is gone."""
    if state.open == BEFORE_START or any(_works(state, at) for at in state.positions.values()):
        return ()
    first = [run for run, at in state.positions.items() if at.released < state.last][:1]
    return tuple(run for run in first if not state.positions[run].dead)


def _works(state: BarrierState, at: Position) -> bool:
    return at.released == at.arrived < state.last
