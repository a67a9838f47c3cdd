"""Observers get events after they are written and warnings at once; waits for disk space are limited."""

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

PATIENCE_S = 60.0  # for another thread
ENTRY = Incident(category="restart", run_name="", episode=None, detail="w0 was started")


@pytest.fixture
def observed():
    return queue.SimpleQueue()


@pytest.fixture
def sink(tmp_path, observed):
    class Observer:
        def observe(self, event):
            observed.put(event)

    first_event = planted_effect()[0]
    sink = EventSink(Journal(tmp_path), begin(first_event), [Observer()])
    sink.record(first_event)
    sink.commit()
    assert observed.get(timeout=PATIENCE_S) == first_event
    return sink


def test_observers_get_events_only_after_they_are_written(sink, observed):
    sink.record(ENTRY)
    sink.warn("no space")
    assert observed.get(timeout=PATIENCE_S) == "no space"
    sink.flush()
    assert observed.get(timeout=PATIENCE_S) == ENTRY
    sink.close()


@pytest.mark.parametrize("ends", [[], [ExperimentEnded(status="failed", detail="no space")]])
def test_the_end_is_the_only_unwritten_event_sent_to_observers(sink, observed, tmp_path, ends):
    for event in (ENTRY, *ends):
        sink.record(event)
    with file_size_limit((tmp_path / "events.jsonl").stat().st_size), pytest.raises(JournalError):
        sink.close()
    assert [observed.get(timeout=PATIENCE_S) for _ in ends] == ends
    assert observed.empty()


def texts_without_paths(received_events):
    return [text.partition(" on the disk")[0] for text in received_events if isinstance(text, str)]


def test_an_evaluated_run_no_longer_waits_for_disk_space(sink, observed):
    """The run sends no other sign after its policy is saved; a later wait is a new one."""
    evaluation = next(event for event in planted_effect() if isinstance(event, RunEvaluated))
    waiting_progress = Progress(run=evaluation.record.run, milestone=1, step=0, phase=PHASE)
    sink.show(waiting_progress)
    sink.append(evaluation)
    sink.show(waiting_progress)
    sink.close()
    received_events = [observed.get() for _ in range(observed.qsize())]
    assert texts_without_paths(received_events) == [
        "no space",
        "the disk has space for checkpoints again: continuing",
        "no space",
    ]


@pytest.mark.parametrize("category", ["worker_death", "hung_worker", "dropped_pair", "cancelled"])
def test_a_lost_or_restarted_run_no_longer_waits_for_disk_space(sink, observed, category):
    """Otherwise no later wait would be reported, because the first one is assumed to last."""
    ended_run = next(event for event in planted_effect() if isinstance(event, RunEvaluated)).record.run
    waiting_progress = Progress(run=ended_run, milestone=1, step=0, phase=PHASE)
    sink.show(waiting_progress)
    sink.append(Incident(category=category, run_name=ended_run.name, detail="its worker died"))
    sink.show(waiting_progress)
    sink.close()
    received_events = [observed.get() for _ in range(observed.qsize())]
    assert texts_without_paths(received_events) == [
        "no space",
        "the disk has space for checkpoints again: continuing",
        "no space",
    ]


# Waits for disk space: of the journal, and of workers that cannot write a checkpoint.


def progress(run="a/0", phase=PHASE):
    ref = RunRef(name=run, group_id=run[0], replicate=0, reward_mode="shaped", controller="ppo", device="cpu:0")
    return Progress(run=ref, milestone=1, step=0, phase=phase)


@pytest.fixture
def warnings():
    return []


@pytest.fixture
def space_wait(tmp_path, warnings):
    wait = DiskSpaceWait(tmp_path, warnings.append)
    assert wait.retry_until_room(lambda: None) is None  # writes the first line of this process
    return wait


def with_limit(space_wait, seconds):
    with CaughtSignals() as signals, space_wait.heeding(signals, seconds):
        return space_wait


def test_several_workers_waiting_for_space_cause_one_warning(space_wait, warnings):
    signs = (progress(), progress(), progress("b/0"), progress(), progress(phase="train"))
    entries = [entry for sign in signs if (entry := space_wait.note(sign))]
    assert texts_without_paths(warnings) == ["no space"]
    entries.append(space_wait.note(progress("b/0", phase="train")))
    assert space_wait.note(progress("b/0", phase="train")) is None
    assert [(entry.category, entry.run_name) for entry in entries] == [("disk_full", "a/0"), ("disk_full", "b/0")]
    assert warnings[1:] == ["the disk has space for checkpoints again: continuing"]


def test_a_wait_for_disk_space_beyond_the_limit_ends_the_experiment(space_wait, tmp_path):
    with pytest.raises(DiskFull, match=rf"then `esper-ab resume {tmp_path}`$"):
        with_limit(space_wait, 0.0).note(progress())


def test_a_write_after_a_timed_out_wait_is_tried_only_once(space_wait):
    tries = []

    def write():
        tries.append(1)
        raise DiskFull("still")

    for _ in range(2):
        with pytest.raises(DiskFull):
            with_limit(space_wait, 0.0).retry_until_room(write)
    assert len(tries) == 2


def test_an_error_before_the_first_record_advises_a_new_launch(tmp_path):
    def raise_disk_full():
        raise DiskFull("no space")

    with pytest.raises(DiskFull, match=r"free some space, then run the command again$"):
        with_limit(DiskSpaceWait(tmp_path, print), 0.0).retry_until_room(raise_disk_full)
