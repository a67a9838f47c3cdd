"""The barrier of one block: events in, commands out. Pure: no socket, no clock, no journal.

A run passes the points 0 (warm), 1 … E (episodes recorded) and E+1 (evaluated). It *arrives* at a point when what it
did is recorded, and is *released* from it when it may work towards the next one. Who waits for whom is the mode:

- lockstep: a point opens for all runs once all have arrived at it;
- independent: each run is released from wherever it arrives;
- alternate: as lockstep, but one run at a time works towards the next point, in the order given for that point;
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
    """The run's work up to `point` is recorded."""

    run: str
    point: int


class Died(msgspec.Struct, frozen=True):
    """The run's worker is gone; the others go on until they need the run."""

    run: str


class Rejoined(msgspec.Struct, frozen=True):
    """A worker stands at `point` for the run again: a checkpoint of something it arrived at before."""

    run: str
    point: int


class Release(msgspec.Struct, frozen=True):
    """These runs may go on from `point`; at the last point: they are done."""

    point: int
    runs: tuple[str, ...]


class Abort(msgspec.Struct, frozen=True):
    """The block cannot get past its present point without this run."""

    run: str


Event = Arrived | Died | Rejoined
Command = Release | Abort


class Place(msgspec.Struct, frozen=True):
    """Where one run stands. While `released == arrived` it works towards the next point; before point 0 it warms up."""

    arrived: int = BEFORE_START
    released: int = BEFORE_START
    dead: bool = False


class State(msgspec.Struct, frozen=True):
    """Where the runs of a block stand."""

    mode: Mode
    last: int  # E+1
    places: dict[str, Place]  # by run, in start order
    turns: tuple[tuple[str, ...], ...]  # alternate: turns[p] is the order of work after point p < last; else empty

    @property
    def open(self) -> int:
        """The last point at which every run has arrived."""
        return min(place.arrived for place in self.places.values())

    @property
    def done(self) -> bool:
        return all(place.released == self.last for place in self.places.values())


def begin(mode: Mode, runs: tuple[str, ...], last: int, turns: tuple[tuple[str, ...], ...] = ()) -> State:
    """A block before its first arrival; ValueError unless `turns` orders all runs at every point but the last."""
    if mode == "alternate" and [sorted(turn) for turn in turns] != [sorted(runs)] * last:
        raise ValueError(f"alternate needs {last} orders of {', '.join(runs)}")
    return State(mode, last, dict.fromkeys(runs, Place()), turns)


def step(state: State, event: Event) -> tuple[State, tuple[Command, ...]]:
    """State after `event`, and what is to be done about it.

    ValueError for an arrival ahead of its release and for a return to a point never reached: no worker of ours does
    either, so nothing sensible follows from them.
    """
    place = state.places[event.run]
    match event:
        case Arrived(run, point):
            if point <= place.arrived:
                return state, ()
            if point > min(place.released + 1, state.last):
                raise ValueError(f"{run} arrived at point {point} but was released from {place.released}")
            return _release_due(_moved(state, run, Place(arrived=point, released=place.released, dead=place.dead)))
        case Died(run):
            if place.dead:
                return state, ()
            return _moved(state, run, Place(place.arrived, place.released, dead=True)), (Abort(run),)
        case Rejoined(run, point):
            if point > place.arrived:
                raise ValueError(f"{run} cannot return to point {point}: it got to {place.arrived}")
            before = max(BEFORE_START, min(place.released, point - 1))
            return _release_due(_moved(state, run, Place(arrived=point, released=before)))


def restore(state: State, stood: Mapping[str, tuple[int, int]]) -> tuple[State, tuple[Command, ...]]:
    """`state` before its first arrival, put where `stood` says: by run, the points arrived at and released from.

    Whoever has work left is gone until it has rejoined; whoever has arrived at the end needs no worker any more.
    """
    places = {
        run: Place(arrived=arrived, released=min(released, arrived), dead=arrived < state.last)
        for run, (arrived, released) in stood.items()
    }
    return _release_due(msgspec.structs.replace(state, places=places))


def opens(state: State, release: Release) -> bool:
    """Whether this release begins the work after a point, rather than passing on the turn within it."""
    return state.mode != "alternate" or release.point == state.last or release.runs[0] == state.turns[release.point][0]


def working(state: State) -> tuple[str, ...]:
    """Runs on their way to their next point."""
    return tuple(run for run, place in state.places.items() if _works(state, place) and not place.dead)


def _moved(state: State, run: str, place: Place) -> State:
    return msgspec.structs.replace(state, places=state.places | {run: place})


def _release_due(state: State) -> tuple[State, tuple[Command, ...]]:
    """Everything that is due now; in sequence the end of one run is the start of the next."""
    commands: list[Command] = []
    while due := _due(state):
        point = state.places[due[0]].arrived
        freed = {run: Place(place.arrived, place.arrived) for run, place in state.places.items() if run in due}
        state = msgspec.structs.replace(state, places=state.places | freed)
        commands.append(Release(point, due))
    return state, tuple(commands)


def _due(state: State) -> tuple[str, ...]:
    """Runs to be released now, which all stand at the same point."""
    if state.mode == "sequence":
        return _next_in_sequence(state)
    waiting = [run for run, place in state.places.items() if place.released < place.arrived and not place.dead]
    if state.mode == "independent":
        return tuple(waiting)
    opened = state.open
    due = [run for run in waiting if state.places[run].arrived == opened]
    if state.mode == "lockstep" or opened == state.last:
        return tuple(due)
    if any(_works(state, place) for place in state.places.values()):
        return ()
    to_come = [run for run in state.turns[opened] if state.places[run].released < opened]
    return tuple(run for run in to_come[:1] if run in due)


def _next_in_sequence(state: State) -> tuple[str, ...]:
    """The first run that is not done, if it waits; nobody goes before all are warm or past a run that is gone."""
    if state.open == BEFORE_START or any(_works(state, place) for place in state.places.values()):
        return ()
    first = [run for run, place in state.places.items() if place.released < state.last][:1]
    return tuple(run for run in first if not state.places[run].dead)


def _works(state: State, place: Place) -> bool:
    return place.released == place.arrived < state.last
