"""The hash of an experiment's results: records that change it, and events that do not."""

import msgspec
import pytest
from support.journals.ready_journals import planted_effect
from support.journals.synthetic import TIMING

from esper_ab.analysis.result_hash import result_hash
from esper_ab.journal.events import EpisodeRecorded, Incident, RunEvaluated, WorkerStarted
from esper_ab.journal.fold import fold


def hash_events(events):
    return result_hash(fold(events))


def alter_first(kind, **changes):
    """Return a journal whose first record of `kind` has other fields."""
    events = planted_effect()
    index = next(i for i, event in enumerate(events) if isinstance(event, kind))
    record = msgspec.structs.replace(events[index].record, **changes)
    return [*events[:index], kind(record=record), *events[index + 1 :]]


@pytest.mark.parametrize(
    "events",
    [
        alter_first(EpisodeRecorded, digest="other"),
        alter_first(RunEvaluated, digest="other"),
        alter_first(RunEvaluated, policy_sha256="0" * 64),
        [event for event in planted_effect() if not (isinstance(event, EpisodeRecorded) and event.record.episode == 7)],
    ],
)
def test_every_record_changes_the_hash(events):
    assert hash_events(events) != hash_events(planted_effect())


def make_incident(category):
    return Incident(category=category, run_name="shaped/0", episode=None, detail="")


def test_the_hash_does_not_depend_on_deaths_times_or_arrival_order():
    events = planted_effect()
    slower_events = alter_first(EpisodeRecorded, timing=msgspec.structs.replace(TIMING, total_s=9.0, train_s=9.0))
    first_index, second_index = [i for i, event in enumerate(events) if isinstance(event, EpisodeRecorded)][:2]
    swapped_events = list(events)
    swapped_events[first_index], swapped_events[second_index] = (
        swapped_events[second_index],
        swapped_events[first_index],
    )
    worker_start = next(event for event in events if isinstance(event, WorkerStarted))
    restarted_events = [
        *events[:40],
        make_incident("worker_death"),
        make_incident("restart"),
        msgspec.structs.replace(worker_start, incarnation=2),
        *events[40:],
    ]
    assert {
        hash_events(journal)
        for journal in (slower_events, swapped_events, restarted_events, [*events, make_incident("dropped_pair")])
    } == {hash_events(events)}


def test_only_the_name_of_a_lost_run_enters_the_hash():
    events = [event for event in planted_effect() if not isinstance(event, RunEvaluated)]
    loss = make_incident("dropped_pair")
    last_index = next(
        i
        for i, event in reversed(list(enumerate(events)))
        if isinstance(event, EpisodeRecorded) and event.record.run.name == "shaped/0"
    )
    events_without_last = [*events[:last_index], *events[last_index + 1 :]]
    assert hash_events([*events, loss]) == hash_events([*events_without_last, loss])
    assert hash_events(events) != hash_events(events_without_last)
    assert hash_events(events) != hash_events([*events, loss])
