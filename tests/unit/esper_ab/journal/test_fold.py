"""The fold of a journal: what it says of runs in every state, however it is cut."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from support.journals import Synthetic, failed_run, one_replicate, planted_effect, records_of, three_groups

from esper_ab.contracts.records import Checkpoint
from esper_ab.journal.events import (
    EpisodeRecorded,
    ExperimentContinued,
    ExperimentEnded,
    Incident,
    LookTaken,
    MilestoneReleased,
    PlanExtended,
    RunReady,
    RunStarted,
    WorkerStarted,
)
from esper_ab.journal.fold import Taken, begin, fold
from esper_ab.journal.outcomes import outcomes
from esper_ab.plan.blocks import extend


def test_states_follow_the_events_of_one_run():
    events = one_replicate()
    history, seen = begin(events[0]), []
    for event in events[1:]:
        history.add(event)
        state = history.runs["shaped/0"].state
        if not seen or seen[-1] != state:
            seen.append(state)
    assert seen == ["planned", "warming up", "training", "evaluating", "finished"]
    assert history.runs["shaped/0"].released == Synthetic().episodes + 1
    assert history.ended.status == "finished"


def test_a_release_is_not_taken_back():
    """A worker that was started again is told of an earlier milestone; what was permitted stays permitted."""
    history = fold(one_replicate())
    history.add(MilestoneReleased(replicate=0, milestone=1, runs=("shaped/0",)))
    assert history.runs["shaped/0"].released == Synthetic().episodes + 1


def test_numbers_alone_are_enough_for_states_and_outcomes():
    """What a coordinator, a viewer and a tracker fold: they keep no record of a training episode."""
    whole, numbers = fold(failed_run()), fold(failed_run(), keeps_records=False)
    assert [run.state for run in numbers.runs.values()] == [run.state for run in whole.runs.values()]
    assert outcomes(numbers) == outcomes(whole)
    assert all(len(run.columns) == len(run.episodes) for run in whole.runs.values())
    assert any(len(run.columns) for run in numbers.runs.values())
    assert not any(len(run.episodes) for run in numbers.runs.values())


def test_a_repeated_record_counts_once():
    events = one_replicate()
    twice = [copy for event in events for copy in ([event] * 2 if isinstance(event, EpisodeRecorded) else [event])]
    assert fold(twice) == fold(events)


def test_what_follows_an_end_means_that_it_goes_on():
    events = one_replicate()
    history = fold([*events[:8], ExperimentEnded(status="interrupted", detail="")])
    assert history.ended is not None
    history.add(events[8])
    assert history.ended is None


def test_a_look_leaves_out_what_its_groups_have_not_started():
    history = begin(three_groups()[0])
    history.add(RunStarted(run=history.runs["shaped/1"].ref, worker="w0", incarnation=1))
    history.add(LookTaken(replicates=6, decided=(), leaving=("shaped",)))
    states = {name: run.state for name, run in history.runs.items() if name.startswith("shaped")}
    assert states.pop("shaped/1") == "warming up"
    assert set(states.values()) == {"left out"}
    assert history.runs["wait/3"].expected


def test_an_extension_adds_runs_and_replaces_the_rule_and_those_who_left_stay_away():
    history = begin(planted_effect()[0])
    history.add(LookTaken(replicates=6, decided=(), leaving=("shaped",)))
    history.add(PlanExtended(extension=extend(history.plan, history.design, 6, 2)))
    assert history.replicates == 8
    assert history.design.evidence == pytest.approx(100.0)
    assert (history.runs["shaped/7"].state, history.runs["simplified/7"].state) == ("left out", "planned")


def test_what_is_recorded_of_a_run_grows_with_its_journal():
    """-1, then 0 once it is warm, then an episode at a time, then one more for the evaluation."""
    events = one_replicate()
    history = begin(events[0])
    run, recorded = history.runs["shaped/0"], 0
    for event in events[1:]:
        history.add(event)
        about = getattr(event, "run", None) or getattr(getattr(event, "record", None), "run", None)
        recorded += about == run.ref and not isinstance(event, RunStarted)
        assert run.recorded == recorded - 1
        assert run.expected == (run.evaluation is None)
    assert run.recorded == run.spec.episodes + 1


def test_a_run_is_taken_by_the_worker_that_is_on_its_device():
    """The time of its first warm-up is kept: a later worker only takes the run up again."""
    history = begin(one_replicate()[0])
    run, other = history.runs["shaped/0"], history.runs["simplified/0"]
    assert (run.ref.device, other.ref.device) == ("cpu:0", "cpu:1")
    first, second, elsewhere = (
        WorkerStarted(worker=name, incarnation=0, device=device, pid=1, uuids=("",), torch_version="2.13")
        for name, device in (("w0", "cpu:0"), ("w2", "cpu:0"), ("w1", "cpu:1"))
    )
    continued = ExperimentContinued(versions={"esper_ab": "2"}, machine={}, code={})
    for event in (
        first, RunStarted(run=run.ref, worker="w0", incarnation=0), RunReady(run=run.ref, warm_up_s=0.5),
        RunReady(run=other.ref, warm_up_s=0.1), continued, elsewhere, second,
        RunReady(run=run.ref, warm_up_s=0.7, milestone=3),
    ):  # fmt: skip
        history.add(event)
    assert run.taken == [Taken(milestone=0, sitting=0, worker=first), Taken(milestone=3, sitting=1, worker=second)]
    assert other.taken == [Taken(milestone=0, sitting=0, worker=None)]
    assert run.warm_up_s == 0.5
    assert (history.workers, history.continued) == ([first, elsewhere, second], [continued])
    assert history.present == {"cpu:0": second, "cpu:1": elsewhere}


def test_checkpoints_are_kept_as_they_come():
    history = fold(one_replicate())
    run, other = history.runs["shaped/0"], history.runs["simplified/0"]
    (*_, record) = records_of(run)
    checkpoints = [Checkpoint(milestone=n, file=f"c/{n}.pt", sha256="0" * 64, size_bytes=9) for n in (2, 1)]
    for checkpoint in (*checkpoints, None):
        history.add(EpisodeRecorded(record=record, checkpoint=checkpoint))
    assert (run.checkpoints, other.checkpoints) == (checkpoints, [])


@pytest.mark.parametrize(("status", "finished"), [("finished", True), ("failed", False), ("interrupted", False)])
def test_an_experiment_is_finished_when_its_end_says_so(status, finished):
    history = fold(one_replicate()[:-1])
    assert not history.finished
    history.add(ExperimentEnded(status=status, detail=""))
    assert history.finished == finished


@pytest.mark.parametrize(("category", "lost", "failed"), [
    ("dropped_pair", True, True), ("cancelled", True, False), ("ppo_pathology", False, False),
    ("worker_death", False, False),
])  # fmt: skip
def test_what_an_incident_does_to_its_run(category, lost, failed):
    history = begin(planted_effect()[0])
    entry = Incident(category=category, run_name="shaped/2", detail="", confounder="collapsed entropy")
    for event in (entry, entry, replace(entry, confounder=UNSET)):
        history.add(event)
    run = history.runs["shaped/2"]
    assert (run.lost, run.failed, run.expected, run.state == "lost") == (lost, failed, not lost, lost)
    assert run.confounders == {"collapsed entropy"}
    assert len(history.incidents) == 3
    assert not any(other.confounders or other.lost for other in history.runs.values() if other is not run)


def test_waits_for_room_on_the_disk_are_told_apart():
    history = begin(planted_effect()[0])
    for category, run_name, detail in (
        ("disk_full", "", "the journal waited 3 s"), ("restart", "shaped/1", "it died"),
        ("disk_full", "shaped/1", "waited 4 s"),
    ):  # fmt: skip
        history.add(Incident(category=category, run_name=run_name, detail=detail))
    assert history.pauses == ("the journal waited 3 s", "shaped/1: waited 4 s")


def test_runs_of_a_group_are_in_the_order_of_replicates_wherever_their_blocks_stand():
    start = planted_effect()[0]
    blocks = tuple(reversed(start.plan.blocks))
    history = begin(replace(start, plan=replace(start.plan, blocks=blocks)))
    assert [run.ref.replicate for run in history.of_group("shaped")] == list(range(6))
