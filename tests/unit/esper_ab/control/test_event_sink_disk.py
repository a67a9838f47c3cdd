"""Waiting for room on the disk: for the journal, and for workers that have none for a checkpoint."""

import pytest

from esper_ab.contracts.errors import DiskFull
from esper_ab.contracts.messages import Progress
from esper_ab.contracts.records import RunRef
from esper_ab.control.event_sink import PHASE, DiskSpaceWait
from esper_ab.control.signals import CaughtSignals


def progress(run="a/0", phase=PHASE):
    ref = RunRef(name=run, group_id=run[0], replicate=0, reward_mode="shaped", controller="ppo", device="cpu:0")
    return Progress(run=ref, milestone=1, step=0, phase=phase)


@pytest.fixture
def told():
    return []


@pytest.fixture
def room(tmp_path, told):
    found = DiskSpaceWait(tmp_path, told.append)
    assert found.await_for(lambda: None) is None  # the first line of this process
    return found


def with_limit(room, seconds):
    with CaughtSignals() as signals, room.heeding(signals, seconds):
        return room


def test_it_is_said_once_that_workers_wait_and_once_that_the_last_goes_on(room, told):
    signs = (progress(), progress(), progress("b/0"), progress(), progress(phase="train"))
    entries = [entry for sign in signs if (entry := room.note(sign))]
    assert [text.partition(" on the disk")[0] for text in told] == ["no space"]
    entries.append(room.note(progress("b/0", phase="train")))
    assert room.note(progress("b/0", phase="train")) is None
    assert [(entry.category, entry.run_name) for entry in entries] == [("disk_full", "a/0"), ("disk_full", "b/0")]
    assert told[1:] == ["the disk has space for checkpoints again: continuing"]


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
            with_limit(room, 0.0).await_for(write)
    assert len(tries) == 2


def test_without_a_line_there_is_nothing_to_resume(tmp_path, told):
    room = DiskSpaceWait(tmp_path, told.append)

    def full():
        raise DiskFull("no space")

    with_limit(room, 0.0)
    with pytest.raises(DiskFull, match=r"free some space, then run the command again$"):
        room.await_for(full)
