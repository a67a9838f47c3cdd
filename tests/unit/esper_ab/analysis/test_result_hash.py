"""The hash of an experiment's results: what it is made of and what it is blind to."""

import msgspec
import pytest
from support.journals.ready_journals import planted_effect
from support.journals.synthetic import TIMING

from esper_ab.analysis.result_hash import result_hash
from esper_ab.journal.events import EpisodeRecorded, Incident, RunEvaluated, WorkerStarted
from esper_ab.journal.fold import fold


def of(events):
    return result_hash(fold(events))


def altered(kind, **changes):
    """A journal whose first record of `kind` has other fields."""
    events = planted_effect()
    index = next(i for i, event in enumerate(events) if isinstance(event, kind))
    record = msgspec.structs.replace(events[index].record, **changes)
    return [*events[:index], kind(record=record), *events[index + 1 :]]


@pytest.mark.parametrize(
    "events",
    [
        altered(EpisodeRecorded, digest="other"),
        altered(RunEvaluated, digest="other"),
        altered(RunEvaluated, policy_sha256="0" * 64),
        [event for event in planted_effect() if not (isinstance(event, EpisodeRecorded) and event.record.episode == 7)],
    ],
)
def test_every_record_counts(events):
    assert of(events) != of(planted_effect())


def incident(category):
    return Incident(category=category, run_name="shaped/0", episode=None, detail="")


def test_deaths_times_and_the_order_of_arrival_do_not_and_no_loss_after_the_evaluation():
    events = planted_effect()
    slower = altered(EpisodeRecorded, timing=msgspec.structs.replace(TIMING, total_s=9.0, train_s=9.0))
    one, other = [i for i, event in enumerate(events) if isinstance(event, EpisodeRecorded)][:2]
    swapped = list(events)
    swapped[one], swapped[other] = swapped[other], swapped[one]
    again = next(event for event in events if isinstance(event, WorkerStarted))
    died = [
        *events[:40],
        incident("worker_death"),
        incident("restart"),
        msgspec.structs.replace(again, incarnation=2),
        *events[40:],
    ]
    assert {of(these) for these in (slower, swapped, died, [*events, incident("dropped_pair")])} == {of(events)}


def test_a_lost_run_counts_by_name_whatever_it_had_recorded():
    events = [event for event in planted_effect() if not isinstance(event, RunEvaluated)]
    lost = incident("dropped_pair")
    last = next(
        i
        for i, event in reversed(list(enumerate(events)))
        if isinstance(event, EpisodeRecorded) and event.record.run.name == "shaped/0"
    )
    fewer = [*events[:last], *events[last + 1 :]]
    assert of([*events, lost]) == of([*fewer, lost])
    assert of(events) != of(fewer)
    assert of(events) != of([*events, lost])
