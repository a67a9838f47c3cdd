"""The time that a gate has taken: its sittings, without the pauses between them. The journals have a line a second."""

from datetime import datetime, timedelta

from support.journals.ready_journals import write
from support.journals.synthetic import Synthetic

from esper_ab.gate.spent import SITTINGS, SittingKept, keep_end, run_seconds, spent_seconds
from esper_ab.journal.events import ExperimentContinued
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read

EVENTS = Synthetic(replicates=2).events()


def test_the_time_from_the_first_event_to_the_last(tmp_path):
    assert spent_seconds(write(tmp_path / "done", EVENTS)) == len(EVENTS) - 1


def test_a_pause_does_not_count(tmp_path):
    events = [*EVENTS[:5], ExperimentContinued(versions={}, machine={}, code={}), *EVENTS[5:]]
    assert spent_seconds(write(tmp_path / "continued", events)) == len(events) - 2


CONTINUED = ExperimentContinued(versions={}, machine={}, code={})


def begin_of(directory, number):
    """Return the time of an event of a journal."""
    reading = read(directory / JOURNAL_NAME)
    for _ in range(number + 1):
        next(reading)
    return datetime.fromisoformat(reading.wall_time)


def test_the_time_before_the_first_event_of_each_sitting_counts(tmp_path):
    directory = write(tmp_path / "continued", [*EVENTS[:5], CONTINUED, *EVENTS[5:]])
    for number, event, seconds in ((0, EVENTS[0], 30.0), (5, CONTINUED, 0.5)):
        began = begin_of(directory, number) - timedelta(seconds=seconds)
        observer = SittingKept(directory=directory, began=began)
        observer.observe("a warning")
        observer.observe(event)
    assert spent_seconds(directory) == 30.0 + 4.0 + 0.5 + len(EVENTS) - 5
    (directory / SITTINGS).write_bytes(b"[{")
    assert spent_seconds(directory) == 4.0 + len(EVENTS) - 5


def test_the_time_until_the_answer_counts_once(tmp_path):
    directory = write(tmp_path / "done", EVENTS)
    began = begin_of(directory, 0)
    SittingKept(directory=directory, began=began).observe(EVENTS[0])
    before = datetime.now(began.tzinfo)
    keep_end(directory, began)
    after = datetime.now(began.tzinfo)
    assert (before - began).total_seconds() <= spent_seconds(directory) <= (after - began).total_seconds()


def test_the_mean_duration_of_runs_that_have_ended(tmp_path):
    history = load(write(tmp_path / "done", EVENTS)).history
    run = next(iter(history.runs.values()))
    expected = sum(run.columns.of("total_s")) + run.evaluation.timing.total_s
    assert run_seconds(history) == expected
    assert run_seconds(load(write(tmp_path / "begun", EVENTS[:3])).history) == 0.0
