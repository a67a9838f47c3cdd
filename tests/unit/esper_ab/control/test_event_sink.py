"""What observers are told of is in the journal; a warning does not wait for that, nor workers for ever for room."""

import queue

import pytest
from support.files.file_size import file_size_limit
from support.journals.ready_journals import planted_effect

from esper_ab.contracts.errors import DiskFull, JournalError
from esper_ab.contracts.messages import Progress
from esper_ab.contracts.records import RunRef
from esper_ab.control.disk_space import PHASE, DiskSpaceWait
from esper_ab.control.event_sink import EventSink
from esper_ab.control.signals import CaughtSignals
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


@pytest.mark.parametrize("ends", [[], [ExperimentEnded(status="failed", detail="no space")]])
def test_what_never_came_into_the_journal_is_never_told_but_the_end_is(sink, told, tmp_path, ends):
    for event in (ENTRY, *ends):
        sink.record(event)
    with file_size_limit((tmp_path / "events.jsonl").stat().st_size), pytest.raises(JournalError):
        sink.close()
    assert [told.get(timeout=PATIENCE_S) for _ in ends] == ends
    assert told.empty()


def texts(said):
    return [text.partition(" on the disk")[0] for text in said if isinstance(text, str)]


def test_a_run_that_is_evaluated_waits_no_more_for_room(sink, told):
    """It says nothing else after its policy has found room; a later lack is a new one."""
    evaluated = next(event for event in planted_effect() if isinstance(event, RunEvaluated))
    waiting = Progress(run=evaluated.record.run, milestone=1, step=0, phase=PHASE)
    sink.show(waiting)
    sink.append(evaluated)
    sink.show(waiting)
    sink.close()
    said = [told.get() for _ in range(told.qsize())]
    assert texts(said) == ["no space", "the disk has space for checkpoints again: continuing", "no space"]


@pytest.mark.parametrize("category", ["worker_death", "hung_worker", "dropped_pair", "cancelled"])
def test_a_run_that_is_over_or_begins_again_waits_no_more_for_room(sink, told, category):
    """Else no later lack of room would be told, because one is assumed to last."""
    over = next(event for event in planted_effect() if isinstance(event, RunEvaluated)).record.run
    waiting = Progress(run=over, milestone=1, step=0, phase=PHASE)
    sink.show(waiting)
    sink.append(Incident(category=category, run_name=over.name, detail="its worker died"))
    sink.show(waiting)
    sink.close()
    said = [told.get() for _ in range(told.qsize())]
    assert texts(said) == ["no space", "the disk has space for checkpoints again: continuing", "no space"]


# Waiting for room on the disk: for the journal, and for workers that have none for a checkpoint.


def progress(run="a/0", phase=PHASE):
    ref = RunRef(name=run, group_id=run[0], replicate=0, reward_mode="shaped", controller="ppo", device="cpu:0")
    return Progress(run=ref, milestone=1, step=0, phase=phase)


@pytest.fixture
def warned():
    return []


@pytest.fixture
def room(tmp_path, warned):
    found = DiskSpaceWait(tmp_path, warned.append)
    assert found.retry_until_room(lambda: None) is None  # the first line of this process
    return found


def with_limit(room, seconds):
    with CaughtSignals() as signals, room.heeding(signals, seconds):
        return room


def test_it_is_said_once_that_workers_wait_and_once_that_the_last_goes_on(room, warned):
    signs = (progress(), progress(), progress("b/0"), progress(), progress(phase="train"))
    entries = [entry for sign in signs if (entry := room.note(sign))]
    assert texts(warned) == ["no space"]
    entries.append(room.note(progress("b/0", phase="train")))
    assert room.note(progress("b/0", phase="train")) is None
    assert [(entry.category, entry.run_name) for entry in entries] == [("disk_full", "a/0"), ("disk_full", "b/0")]
    assert warned[1:] == ["the disk has space for checkpoints again: continuing"]


def test_a_worker_that_has_waited_for_too_long_ends_the_experiment(room, tmp_path):
    with pytest.raises(DiskFull, match=rf"then `esper-ab resume {tmp_path}`$"):
        with_limit(room, 0.0).note(progress())


def test_what_was_given_up_is_tried_once_more_and_not_waited_for(room):
    tries = []

    def write():
        tries.append(1)
        raise DiskFull("still")

    for _ in range(2):
        with pytest.raises(DiskFull):
            with_limit(room, 0.0).retry_until_room(write)
    assert len(tries) == 2


def test_without_a_line_there_is_nothing_to_resume(tmp_path):
    def full():
        raise DiskFull("no space")

    with pytest.raises(DiskFull, match=r"free some space, then run the command again$"):
        with_limit(DiskSpaceWait(tmp_path, print), 0.0).retry_until_room(full)
