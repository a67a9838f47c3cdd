"""Kept runs in simulated experiments: they stand for runs of the plan, whatever fails and whoever takes over."""

from functools import cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.outcomes.drawn_decisions import Choices
from support.plans import fake_plans
from support.worlds.machine_world import World, limits_of

from esper_ab.control.rules.reuse import check_due, is_held, stands
from esper_ab.journal.events import (
    EpisodeRecorded,
    Incident,
    KeptGroup,
    LookTaken,
    ReferencesOpened,
    ReuseChecked,
    RunEvaluated,
    RunOffered,
    RunReused,
    RunStarted,
    TrainerMended,
)
from esper_ab.journal.fold import fold

PLANS = {
    "lockstep": fake_plans.plan(seeds=4),
    "two blocks at once": fake_plans.plan(seeds=4, cores=4),
    "independent": fake_plans.plan(seeds=3, sync="independent"),
    "alternate": fake_plans.plan(seeds=3, cores=1, placement="alternate"),
    "sequence": fake_plans.plan(seeds=3, cores=1, placement="sequence"),
    "early stop": fake_plans.plan(seeds=9, cores=4, episodes=1, unpaired=True, margin=0.001, looks=(6, 9)),
    "open-ended": fake_plans.plan(seeds=2, episodes=1, unpaired=True, margin=0.001, open_ended=True),
}
EVERY_PLAN = pytest.mark.parametrize("name", PLANS)
PHASES = [phase for phase in (Phase.reuse, Phase.generate, Phase.shrink) if phase in settings.default.phases]
WORLDS = st.binary(min_size=600, max_size=600).map(Choices)


def by_run(events):
    """Return the digests of each run's records; AssertionError if one was recorded twice or out of order."""
    digests = {}
    for event in events:
        if isinstance(event, EpisodeRecorded):
            assert event.record.episode == len(digests.setdefault(event.record.run.name, []))
        if isinstance(event, EpisodeRecorded | RunEvaluated):
            digests.setdefault(event.record.run.name, []).append(event.record.digest)
    return digests


@cache
def trained(name):
    """Return the end of this experiment if every run is trained."""
    return World(PLANS[name]).to_the_end()


def offers(name, *, groups, repeats=True, number=100):
    """Return the events with which an experiment begins that is offered the first runs of `groups`."""
    journal = trained(name).journal
    history = fold(journal)
    kept_group = KeptGroup(identity="0" * 64, conditions={}, repeats=repeats)
    references = ReferencesOpened(
        folder="/kept", limit_bytes=1, opened_at="2026-11-30", groups=dict.fromkeys(groups, kept_group)
    )
    offered = []
    for run in history.runs.values():
        if run.ref.group_id in groups and run.evaluation is not None and run.ref.replicate < number:
            episodes = tuple(run.episodes.values())
            offered.append(
                RunOffered(
                    run_name=run.ref.name,
                    source="earlier",
                    trained_at="2026-11-23",
                    age_s=0,
                    check=repeats and run.ref.replicate == 0,
                    episodes=episodes,
                    evaluation=run.evaluation,
                )
            )
    return [journal[0], references, *sorted(offered, key=lambda offer: not offer.check)]


def world_with(name, **options):
    return World(PLANS[name], offers(name, **options))


def reused(world):
    return [event.run.name for event in world.journal if isinstance(event, RunReused)]


@EVERY_PLAN
@pytest.mark.parametrize("repeats", [True, False])
def test_the_records_are_those_of_training(name, repeats):
    groups = {group.name for group in PLANS[name].experiment.groups}
    world = world_with(name, groups={min(groups)}, repeats=repeats).to_the_end()
    assert world.error is None
    assert by_run(world.journal) == by_run(trained(name).journal)
    if PLANS[name].design.looks:  # any other plan looks at whatever is complete
        assert world.recorded.looks == trained(name).recorded.looks
    started = [event.run.name for event in world.journal if isinstance(event, RunStarted)]
    assert sorted(started + reused(world)) == sorted(by_run(world.journal))
    expected = {run for run in by_run(world.journal) if run.startswith(f"{min(groups)}/")}
    assert set(reused(world)) == expected - ({f"{min(groups)}/0"} if repeats else set())


@EVERY_PLAN
def test_nothing_is_lost_or_doubled_despite_faults(name):
    """Other coordinators may take over at any line of the journal."""
    groups = {group.name for group in PLANS[name].experiment.groups}

    @settings(max_examples=15 if name == "early stop" else 40, phases=PHASES)
    @given(choices=WORLDS)
    def in_every_world(choices):
        events = offers(name, groups=groups if choices.number(2) else {min(groups)}, repeats=bool(choices.number(3)))
        world = World(PLANS[name], events, limits=limits_of(1 + choices.number(3)))
        world.some_faults(choices)
        for _ in range(choices.number(3)):
            world = world.resumed(1 + choices.number(len(world.journal)))
            world.some_faults(choices)
        world.to_the_end()
        assert world.recorded == fold(world.journal)
        digests = by_run(world.journal)
        trained_digests = by_run(trained(name).journal)
        for run in world.recorded.runs.values():
            if run.evaluation is not None and run.ref.name in trained_digests:
                assert digests[run.ref.name] == trained_digests[run.ref.name]
        if world.error is None and not any(run.lost for run in world.recorded.runs.values()):
            assert digests == trained_digests

    in_every_world()


def test_blocks_wait_until_the_first_seed_was_trained_again():
    world = world_with("two blocks at once", groups={"a"})
    held = [is_held(world.recorded, block) for block in world.recorded.blocks]
    assert held == [False, True, True, True]
    while world.recorded.reuse_checked is None:
        assert {name.partition("/")[2] for name, run in world.recorded.runs.items() if run.started} <= {"0"}
        world.in_peace()
    assert world.recorded.reuse_checked == ReuseChecked(agrees=True, runs=("a/0",))
    assert [stands(world.recorded, f"a/{seed}") for seed in range(4)] == [False, True, True, True]


def test_runs_are_trained_on_the_lanes_of_reused_ones():
    world = world_with("lockstep", groups={"a"}, repeats=False)
    while not all(worker.working for worker in world.workers.values()):
        world.in_peace()
    assert {worker.run for worker in world.workers.values()} == {"b/0", "b/1"}


@pytest.mark.parametrize("name", ["alternate", "sequence"])
def test_runs_that_take_turns_do_so_beside_reused_ones(name):
    world = world_with(name, groups={"a"}, repeats=False)
    while not world.is_over:
        world.in_peace()
        assert sum(worker.working for worker in world.workers.values()) <= 1


@pytest.mark.parametrize("part", ["episode", "evaluation"])
def test_another_number_in_the_first_seed_makes_all_runs_be_trained(part):
    events = offers("lockstep", groups={"a"})
    check = next(event for event in events if isinstance(event, RunOffered) and event.check)
    if part == "episode":
        first, *others = check.episodes
        changed = replace(check, episodes=(replace(first, digest="another"), *others))
    else:
        changed = replace(check, evaluation=replace(check.evaluation, digest="another"))
    world = World(PLANS["lockstep"], [changed if event is check else event for event in events]).to_the_end()
    assert reused(world) == []
    assert by_run(world.journal) == by_run(trained("lockstep").journal)
    outcome = world.recorded.reuse_checked
    said = "a/0 gave other numbers in episode 0" if part == "episode" else "a/0 gave another outcome"
    assert (outcome.agrees, outcome.detail) == (False, said)
    assert world.warnings == [f"kept runs are not reused, because {said}"]


def test_kept_runs_are_not_reused_if_the_first_seed_is_given_up():
    events = offers("lockstep", groups={"a"})
    losses = [Incident(category="dropped_pair", run_name=f"{group}/0", detail="") for group in "ab"]
    world = World(PLANS["lockstep"], [*events, *losses]).to_the_end()
    assert reused(world) == []
    assert world.recorded.reuse_checked.detail == "a/0 was not finished"
    assert {name for name, run in world.recorded.runs.items() if run.state != "finished"} == {"a/0", "b/0"}


def test_kept_runs_of_a_trainer_that_was_mended_are_not_reused():
    plan = fake_plans.with_trainer_runs(fake_plans.plan(seeds=3))
    world = World(plan, [*offers("lockstep", groups={"a"}, repeats=False)])
    history = world.recorded
    assert stands(history, "a/1")
    history.mended = TrainerMended(sha256="1" * 64, before=())
    assert not stands(history, "a/1")


def test_offers_without_a_check_are_not_waited_for():
    """As after a power cut in the first moment, which left a part of the offers."""
    events = [
        event for event in offers("lockstep", groups={"a"}) if not (isinstance(event, RunOffered) and event.check)
    ]
    world = World(PLANS["lockstep"], events)
    assert check_due(world.recorded) is None
    assert not any(is_held(world.recorded, block) for block in world.recorded.blocks)
    world.to_the_end()
    assert reused(world) == []
    assert by_run(world.journal) == by_run(trained("lockstep").journal)


def test_a_look_that_decides_leaves_kept_runs_unused():
    world = world_with("early stop", groups={"a", "b"}, repeats=False).to_the_end()
    (look,) = [event for event in world.journal if isinstance(event, LookTaken)]
    assert look.replicates == 6
    assert len(reused(world)) == 12
