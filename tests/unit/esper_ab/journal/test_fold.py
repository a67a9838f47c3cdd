"""The fold of a journal: states of runs and experiment, and journals that it refuses."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from support.journals.ready_journals import failed_run, one_replicate, planted_effect, records_of, three_groups, write
from support.journals.synthetic import Synthetic

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.records import Checkpoint
from esper_ab.design.design import Contrast
from esper_ab.journal.events import (
    EpisodeRecorded,
    ExperimentContinued,
    ExperimentEnded,
    Incident,
    LookTaken,
    MilestoneReleased,
    PlanExtended,
    RunEvaluated,
    RunReady,
    RunStarted,
    WorkerStarted,
)
from esper_ab.journal.fold import Inconsistent, Taken, begin, fold
from esper_ab.journal.load import load
from esper_ab.journal.outcomes import outcomes
from esper_ab.plan.blocks import extend
from esper_ab.plan.plan import Block


def test_the_state_of_a_run_follows_its_events():
    """`record_count` is -1, then 0 after warm-up, then grows by 1 with each episode and with the evaluation."""
    events = one_replicate()
    history = begin(events[0])
    states = []
    run = history.runs["shaped/0"]
    record_count = 0
    for event in events[1:]:
        history.add(event)
        states += [run.state] if run.state not in states[-1:] else []
        ref = getattr(event, "run", None) or getattr(getattr(event, "record", None), "run", None)
        record_count += ref == run.ref and not isinstance(event, RunStarted)
        assert run.recorded == record_count - 1
        assert run.expected == (run.evaluation is None)
    assert states == ["planned", "warming up", "training", "evaluating", "finished"]
    assert run.recorded == run.released == Synthetic().episodes + 1
    assert history.ended.status == "finished"


def test_a_repeated_release_of_an_earlier_milestone_has_no_effect():
    """A restarted worker gets the release of an earlier milestone again; the later one stays valid."""
    history = fold(one_replicate())
    history.add(MilestoneReleased(replicate=0, milestone=1, runs=("shaped/0",)))
    assert history.runs["shaped/0"].released == Synthetic().episodes + 1


def test_folding_without_keeping_records_gives_the_same_outcomes():
    """Coordinators, viewers and trackers fold without keeping records of training episodes."""
    whole = fold(failed_run())
    numbers = fold(failed_run(), keeps_records=False)
    assert [run.state for run in numbers.runs.values()] == [run.state for run in whole.runs.values()]
    assert outcomes(numbers) == outcomes(whole)
    assert all(len(run.columns) == len(run.episodes) for run in whole.runs.values())
    assert any(len(run.columns) for run in numbers.runs.values())
    assert not any(len(run.episodes) for run in numbers.runs.values())


def test_a_repeated_record_is_counted_once():
    events = one_replicate()
    doubled_events = [
        copy for event in events for copy in ([event] * 2 if isinstance(event, EpisodeRecorded) else [event])
    ]
    assert fold(doubled_events) == fold(events)


@pytest.mark.parametrize(("status", "finished"), [("finished", True), ("failed", False), ("interrupted", False)])
def test_an_event_after_the_end_continues_an_experiment(status, finished):
    events = one_replicate()[:-1]
    history = fold(events[:-1])
    assert not history.finished
    history.add(ExperimentEnded(status=status, detail=""))
    assert history.ended is not None
    assert history.finished == finished
    history.add(events[-1])
    assert history.ended is None


def test_unstarted_runs_of_a_group_are_left_out_after_the_group_leaves():
    history = begin(three_groups()[0])
    history.add(RunStarted(run=history.runs["shaped/1"].ref, worker="w0", incarnation=1))
    history.add(LookTaken(replicates=6, decided=(), leaving=("shaped",)))
    states = {name: run.state for name, run in history.runs.items() if name.startswith("shaped")}
    assert states.pop("shaped/1") == "warming up"
    assert set(states.values()) == {"left out"}
    assert history.runs["wait/3"].expected


def test_an_extension_adds_runs_only_for_remaining_groups():
    history = begin(planted_effect()[0])
    history.add(LookTaken(replicates=6, decided=(), leaving=("shaped",)))
    history.add(PlanExtended(extension=extend(history.plan, history.design, 6, 2)))
    assert history.replicates == 8
    assert history.design.evidence == pytest.approx(100.0)
    assert (history.runs["shaped/7"].state, history.runs["simplified/7"].state) == ("left out", "planned")


def test_a_run_is_assigned_to_the_worker_on_its_device():
    """A later worker on the device continues the run; its first warm-up time is kept."""
    history = begin(one_replicate()[0])
    run = history.runs["shaped/0"]
    other_run = history.runs["simplified/0"]
    assert (run.ref.device, other_run.ref.device) == ("cpu:0", "cpu:1")
    first_start, second_start, start_elsewhere = (
        WorkerStarted(worker=name, incarnation=0, device=device, pid=1, uuids=("",), torch_version="2.13")
        for name, device in (("w0", "cpu:0"), ("w2", "cpu:0"), ("w1", "cpu:1"))
    )
    continuation = ExperimentContinued(versions={"esper_ab": "2"}, machine={}, code={})
    for event in (
        first_start,
        RunStarted(run=run.ref, worker="w0", incarnation=0),
        RunReady(run=run.ref, warm_up_s=0.5),
        RunReady(run=other_run.ref, warm_up_s=0.1),
        continuation,
        start_elsewhere,
        second_start,
        RunReady(run=run.ref, warm_up_s=0.7, milestone=3),
    ):
        history.add(event)
    assert run.taken == [
        Taken(milestone=0, sitting=0, worker=first_start),
        Taken(milestone=3, sitting=1, worker=second_start),
    ]
    assert other_run.taken == [Taken(milestone=0, sitting=0, worker=None)]
    assert run.warm_up_s == 0.5
    assert (history.workers, history.continued) == ([first_start, start_elsewhere, second_start], [continuation])
    assert history.present == {"cpu:0": second_start, "cpu:1": start_elsewhere}


def test_checkpoints_are_kept_in_the_order_of_their_events():
    history = fold(one_replicate())
    run = history.runs["shaped/0"]
    other_run = history.runs["simplified/0"]
    (*_, record) = records_of(run)
    checkpoints = [Checkpoint(milestone=n, file=f"c/{n}.pt", sha256="0" * 64, size_bytes=9) for n in (2, 1)]
    for checkpoint in (*checkpoints, None):
        history.add(EpisodeRecorded(record=record, checkpoint=checkpoint))
    assert (run.checkpoints, other_run.checkpoints) == (checkpoints, [])


@pytest.mark.parametrize(
    ("category", "is_lost", "is_failed"),
    [
        ("dropped_pair", True, True),
        ("cancelled", True, False),
        ("ppo_pathology", False, False),
        ("worker_death", False, False),
    ],
)
def test_an_incident_changes_the_state_of_its_run(category, is_lost, is_failed):
    history = begin(planted_effect()[0])
    entry = Incident(category=category, run_name="shaped/2", detail="", confounder="collapsed entropy")
    for event in (entry, entry, replace(entry, confounder=UNSET)):
        history.add(event)
    run = history.runs["shaped/2"]
    assert (run.lost, run.failed, run.expected, run.state == "lost") == (is_lost, is_failed, not is_lost, is_lost)
    assert run.confounders == {"collapsed entropy"}
    assert len(history.incidents) == 3
    assert not any(
        other_run.confounders or other_run.lost for other_run in history.runs.values() if other_run is not run
    )


def test_pauses_for_a_full_disk_are_counted_separately():
    history = fold(
        [
            planted_effect()[0],
            Incident(category="disk_full", run_name="", detail="the journal waited 3 s"),
            Incident(category="restart", run_name="shaped/1", detail="it died"),
            Incident(category="disk_full", run_name="shaped/1", detail="waited 4 s"),
        ]
    )
    assert history.pauses == ("the journal waited 3 s", "shaped/1: waited 4 s")


def test_the_runs_of_a_group_are_ordered_by_seed():
    start = planted_effect()[0]
    blocks = tuple(reversed(start.plan.blocks))
    history = begin(replace(start, plan=replace(start.plan, blocks=blocks)))
    assert [run.ref.name for run in history.of_group("shaped")] == [f"shaped/{replicate}" for replicate in range(6)]


# Journals with intact lines that no version of esper_ab writes: each is refused with a reason.


EVENTS = one_replicate()
PLAN = EVENTS[0].plan
EXTENSION = extend(PLAN, PLAN.design, 1, 1)
REF = PLAN.blocks[0].runs[0].ref


def with_ref(part, **change):
    """Return the plan or extension with a changed reference of its first run."""
    block, *blocks = part.blocks
    spec, *specs = block.runs
    changed_block = replace(block, runs=(replace(spec, ref=replace(spec.ref, **change)), *specs))
    return replace(part, blocks=(changed_block, *blocks))


def with_contrast(part, a, b):
    return replace(part, design=replace(part.design, comparisons=(Contrast(a=a, b=b),)))


# Changes that make a plan or an extension impossible, and the refusals.
WRONG_PLANS = [
    (lambda part: replace(part, blocks=()), "the plan trains no group"),
    (lambda part: replace(part, blocks=(Block(replicate=1, runs=()),)), "the plan trains no group"),
    (
        lambda part: with_contrast(part, "sparse", "shaped"),
        "the plan compares 'sparse', which is not one of its groups",
    ),
    (
        lambda part: with_contrast(part, "shaped", "sparse"),
        "the plan compares 'sparse', which is not one of its groups",
    ),
    (lambda part: with_ref(part, group_id="sparse"), "the plan trains 'sparse', which is not one of its groups"),
    (lambda part: with_ref(part, device="cpu:9"), "the plan trains on 'cpu:9', which is not one of its devices"),
]


def evaluation_event(run=REF, **change):
    """Return an evaluation with changes in its last environment."""
    record = next(event.record for event in EVENTS if isinstance(event, RunEvaluated))
    *first_episodes, last_episode = record.episodes
    changed_episode = replace(last_episode, result=replace(last_episode.result, **change))
    return RunEvaluated(record=replace(record, run=run, episodes=(*first_episodes, changed_episode)))


def episode_event(run=REF, **change):
    record = next(event.record for event in EVENTS if isinstance(event, EpisodeRecorded))
    *first_envs, last_env = record.envs
    return EpisodeRecorded(record=replace(record, run=run, envs=(*first_envs, replace(last_env, **change))))


def incident_of(name, category="restart"):
    return Incident(category=category, run_name=name, detail="")


NOBODY = replace(REF, name="shaped/99")
UNPLANNED = "run 'shaped/99' is not in the plan"
NONE = "run '' is not in the plan"
REVERSED = dict(reversed(evaluation_event().record.episodes[0].result.measures.items()))
OTHER_MEASURES = "of shaped/0 has other measures than its plan"
AFTER_THE_START = [
    (EVENTS[0], "the experiment starts a second time"),
    (RunStarted(run=NOBODY, worker="w0", incarnation=0), UNPLANNED),
    (RunReady(run=NOBODY, warm_up_s=0.1), UNPLANNED),
    (episode_event(NOBODY), UNPLANNED),
    (evaluation_event(NOBODY), UNPLANNED),
    (MilestoneReleased(replicate=0, milestone=0, runs=("shaped/0", "shaped/99")), UNPLANNED),
    (incident_of("shaped/99"), UNPLANNED),
    *((incident_of("", why), NONE) for why in ("ppo_pathology", "dropped_pair", "cancelled")),
    (episode_event(measures={"speed": 1.0}), f"episode 0 {OTHER_MEASURES}"),
    (episode_event(measures=REVERSED), f"episode 0 {OTHER_MEASURES}"),
    (evaluation_event(measures=REVERSED), f"the evaluation {OTHER_MEASURES}"),
    (evaluation_event(outcome=None), "the evaluation of shaped/0 has an environment without an outcome"),
    *((PlanExtended(extension=change(EXTENSION)), text) for change, text in WRONG_PLANS),
]
REFUSED = [
    *((events, "it does not begin with experiment_started") for events in ([], EVENTS[1:])),
    *(([replace(EVENTS[0], plan=change(PLAN)), *EVENTS[1:]], text) for change, text in WRONG_PLANS),
    *(([*EVENTS[:5], event, *EVENTS[5:]], text) for event, text in AFTER_THE_START),
]


@pytest.mark.parametrize(("events", "text"), REFUSED)
def test_a_journal_with_an_impossible_event_is_refused(events, text):
    with pytest.raises(Inconsistent) as refusal:
        fold(events)
    assert str(refusal.value) == text


def test_the_error_about_an_impossible_event_names_its_line(tmp_path):
    event, text = AFTER_THE_START[0]
    with pytest.raises(JournalError) as refusal:
        load(write(tmp_path / "run", [*EVENTS[:5], event, *EVENTS[5:]]))
    assert str(refusal.value).endswith(f"events.jsonl, line 6: intact, but {text}: not a journal of esper_ab")
