"""The barrier under any interleaving of arrivals, repeats, deaths and rejoins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outcomes.drawn_decisions import Choices

from esper_ab.control.rules import barrier
from esper_ab.control.rules.barrier import ReleaseRuns

RUNS = ("a/0", "b/0", "c/0")
LAST = 4  # E = 3
MODES = ("lockstep", "independent", "alternate", "sequence")


CHOICES = st.binary(max_size=150).map(Choices)


def begin(mode):
    return barrier.begin(mode, RUNS, LAST)


class World:
    """Workers as the barrier sees them: each works towards the next milestone after its release."""

    def __init__(self, state):
        self.state = state
        # last milestone that the run's worker has reached; without a worker, the last recorded one
        self.at = dict.fromkeys(RUNS, -1)
        self.recorded = dict.fromkeys(RUNS, -1)
        self.working = set(RUNS)
        self.dead = set()
        self.got = {run: [] for run in RUNS}  # releases received

    def feed(self, event, *arguments):
        self.state, releases = event(self.state, *arguments)
        for release in releases:
            for run in release.runs:
                self.receive(run, release.milestone)
        return releases

    def receive(self, run, milestone):
        assert run not in self.dead
        assert milestone == self.at[run]
        assert run not in self.working
        if self.state.mode in ("lockstep", "alternate"):
            assert min(self.at.values()) >= milestone
        if self.state.mode in ("alternate", "sequence") and milestone < LAST:
            assert not self.working
        self.got[run].append(milestone)
        if milestone < LAST:
            self.working.add(run)

    def arrive(self, run):
        self.working.remove(run)
        self.at[run] += 1
        self.recorded[run] = max(self.recorded[run], self.at[run])
        return self.feed(barrier.arrived, run, self.at[run])

    def die(self, run):
        self.working.discard(run)
        self.dead.add(run)
        self.at[run] = self.recorded[run]
        return self.feed(*self.death(run))

    def death(self, run):
        return barrier.died, run, self.recorded[run], max(self.got[run], default=-1)

    def rejoin(self, run, milestone):
        self.dead.remove(run)
        self.at[run] = milestone
        if milestone == barrier.BEFORE_START:
            self.working.add(run)
        return self.feed(barrier.rejoined, run, milestone)


@pytest.mark.parametrize("mode", MODES)
@given(choices=CHOICES)
def test_deaths_and_rejoins_cause_neither_early_releases_nor_deadlocks(mode, choices):
    world = World(begin(mode))
    for _ in range(choices.number(50)):
        living_runs = [run for run in RUNS if run not in world.dead]
        possible_events = [("arrive", run) for run in sorted(world.working)]
        possible_events += [("die", run) for run in living_runs] + [("rejoin", run) for run in sorted(world.dead)]
        action, run = choices.choose(possible_events)
        if action == "arrive":
            world.arrive(run)
        elif action == "die":
            world.die(run)
            assert world.feed(*world.death(run)) == ()
        else:
            world.rejoin(run, max(-1, world.at[run] - choices.number(2)))
    for run in sorted(world.dead):
        world.rejoin(run, world.at[run])
    while not world.state.done:
        assert world.working, "deadlock"
        world.arrive(min(world.working))
    for run in RUNS:
        assert world.got[run][-1] == LAST
        assert set(world.got[run]) == set(range(LAST + 1))


@pytest.mark.parametrize("mode", MODES)
@given(choices=CHOICES)
def test_a_restored_barrier_continues_to_the_end(mode, choices):
    """Arrivals and releases of the last milestone are recorded; other releases may not be."""
    world = World(begin(mode))
    for _ in range(choices.number(20)):
        if world.working:
            world.arrive(choices.choose(sorted(world.working)))
    positions = {run: (position.arrived, position.released) for run, position in world.state.positions.items()}
    restored_barrier, commands = barrier.restore(begin(mode), positions)
    assert {
        run: (position.arrived, position.released) for run, position in restored_barrier.positions.items()
    } == positions
    assert commands == ()  # everything due had been released
    world.state = restored_barrier
    world.working = set()
    world.dead = {run for run in RUNS if world.at[run] < LAST}
    assert barrier.working(restored_barrier) == ()
    for run in choices.order(sorted(world.dead)):
        world.rejoin(run, max(-1, world.at[run] - choices.number(2)))
    while not world.state.done:
        assert world.working, "deadlock"
        world.arrive(choices.choose(sorted(world.working)))
    assert all(set(world.got[run]) == set(range(LAST + 1)) for run in RUNS)


def test_a_restored_block_is_released_if_all_its_runs_have_arrived():
    positions = {"a/0": (LAST, LAST - 1), "b/0": (LAST, LAST - 1)}
    state, commands = barrier.restore(barrier.begin("lockstep", ("a/0", "b/0"), LAST), positions)
    assert commands == (ReleaseRuns(LAST, ("a/0", "b/0")),)
    assert state.done


@given(choices=CHOICES)
def test_sequence_mode_trains_runs_in_start_order_after_all_warm_ups(choices):
    world = World(begin("sequence"))
    order = []
    while not world.state.done:
        run = choices.choose(sorted(world.working))
        if world.at[run] >= 0:
            order.append(run)
            assert min(world.at.values()) >= 0
        world.arrive(run)
    assert order == [run for run in RUNS for _ in range(LAST)]


@given(choices=CHOICES)
def test_alternate_mode_reverses_the_order_of_runs_every_milestone(choices):
    world = World(begin("alternate"))
    order = []
    while not world.state.done:
        run = choices.choose(sorted(world.working))
        if world.at[run] >= 0:
            order.append((world.at[run], run))
        world.arrive(run)
    expected_order = [RUNS if milestone % 2 == 0 else RUNS[::-1] for milestone in range(LAST)]
    assert order == [(milestone, run) for milestone, runs in enumerate(expected_order) for run in runs]


@given(choices=CHOICES)
def test_lockstep_mode_releases_each_milestone_once_for_all_runs(choices):
    world = World(begin("lockstep"))
    releases = []
    while not world.state.done:
        releases += world.arrive(choices.choose(sorted(world.working)))
    assert releases == [ReleaseRuns(milestone, RUNS) for milestone in range(LAST + 1)]


MILESTONES = st.integers(-1, LAST)


@pytest.mark.parametrize("mode", MODES)
@given(st.lists(st.tuples(st.sampled_from(RUNS), MILESTONES, MILESTONES, st.booleans()), max_size=6), st.data())
def test_a_repeated_arrival_has_no_effect(mode, deaths, data):
    """It changes nothing after any deaths, and wherever other workers have rejoined."""
    state = begin(mode)
    for run, recorded_milestone, released_milestone, is_rejoining in deaths:
        state, _ = barrier.died(state, run, recorded_milestone, released_milestone)
        if is_rejoining:
            milestone = data.draw(st.integers(-1, state.positions[run].arrived))
            state, _ = barrier.rejoined(state, run, milestone)
    for run, position in state.positions.items():
        for milestone in range(-1, position.arrived + 1):
            assert barrier.arrived(state, run, milestone) == (state, ())


@pytest.mark.parametrize(
    ("event", "milestone", "reason"),
    [
        (barrier.arrived, 1, "arrived at milestone 1 but was released from -1"),
        (barrier.rejoined, 3, "cannot return to milestone 3"),
    ],
)
def test_an_impossible_arrival_or_rejoin_raises_an_error(event, milestone, reason):
    state, _ = barrier.arrived(barrier.begin("lockstep", RUNS, LAST), "a/0", 0)
    with pytest.raises(ValueError, match=reason):
        event(state, "a/0", milestone)
