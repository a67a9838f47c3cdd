"""What observers are told of is in the journal; a warning does not wait for that."""

import queue

import pytest
from support.file_size import largest
from support.journals import planted_effect

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.messages import Progress
from esper_ab.control.event_sink import PHASE, EventSink
from esper_ab.journal.events import ExperimentEnded, Incident, RunEvaluated
from esper_ab.journal.file import Journal
from esper_ab.journal.fold import begin

PATIENCE_S = 60.0  # with another thread
ENTRY = Incident(category="restart", run_name="", episode=None, detail="w0 was started")


@pytest.fixture
def told():
    return queue.SimpleQueue()


@pytest.fixture
def sink(tmp_path, told):
    class Observer:
        def observe(self, event):
            told.put(event)

    first = planted_effect()[0]
    sink = EventSink(Journal(tmp_path), begin(first), [Observer()])
    sink.record(first)
    sink.commit()
    assert told.get(timeout=PATIENCE_S) == first
    return sink


def test_a_warning_is_told_at_once_and_an_event_when_it_is_written(sink, told):
    sink.record(ENTRY)
    sink.warn("no space")
    assert told.get(timeout=PATIENCE_S) == "no space"
    sink.flush()
    assert told.get(timeout=PATIENCE_S) == ENTRY
    sink.close()


def test_what_never_came_into_the_journal_is_never_told(sink, told, tmp_path):
    sink.record(ENTRY)
    with largest((tmp_path / "events.jsonl").stat().st_size), pytest.raises(JournalError):
        sink.close()
    assert told.empty()


def test_the_end_is_told_although_it_finds_no_room(sink, told, tmp_path):
    end = ExperimentEnded(status="failed", detail="no space")
    sink.record(ENTRY)
    sink.record(end)
    with largest((tmp_path / "events.jsonl").stat().st_size), pytest.raises(JournalError):
        sink.close()
    assert told.get(timeout=PATIENCE_S) == end
    assert told.empty()


def test_a_run_that_is_evaluated_waits_no_more_for_room(sink, told):
    """It says nothing else after its policy has found room; a later lack is a new one."""
    evaluated = next(event for event in planted_effect() if isinstance(event, RunEvaluated))
    run = evaluated.record.run
    waiting = Progress(run=run, milestone=1, step=0, phase=PHASE)
    sink.show(waiting)
    sink.append(evaluated)
    sink.show(waiting)
    sink.close()
    notices = []
    while not told.empty():
        notices += [seen] if isinstance(seen := told.get(), str) else []
    assert [text.partition(" on the disk")[0] for text in notices] == [
        "no space", "the disk has space for checkpoints again: continuing", "no space",
    ]  # fmt: skip
