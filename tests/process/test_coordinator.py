"""The coordinator over real sockets, with workers that are threads and have no torch."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import Counter

import pytest
import zmq
from support import fake_plans
from support.conducted import Watcher, of
from support.fake_worker import FAULT_VARIABLE

from esper_ab.contracts.errors import Interrupted, UsageError, WorkerFailed, WorkerHung
from esper_ab.contracts.messages import EpisodeFinished, Progress, Ready, Release
from esper_ab.control.experiment_run import run
from esper_ab.control.hub import Hub
from esper_ab.control.rules.workers import Limits
from esper_ab.journal.events import (
    EpisodeRecorded,
    ExperimentEnded,
    ExperimentStarted,
    Incident,
    LookTaken,
    MilestoneReleased,
    RunEvaluated,
    RunReady,
    RunStarted,
    WorkerStarted,
)
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes
from esper_ab.launchers.inline import InlineLauncher

LAUNCHER = InlineLauncher("support.fake_worker:main_in_thread")


def conduct(experiment_dir, plan, *observers, limits=None):
    run(plan, experiment_dir, LAUNCHER, observers, limits)
    return list(read(experiment_dir / JOURNAL_NAME))


def ended(experiment_dir):
    (*_, last) = read(experiment_dir / JOURNAL_NAME)
    assert isinstance(last, ExperimentEnded)
    return last.status


def test_one_block_from_start_to_end(tmp_path):
    plan = fake_plans.plan()
    events = conduct(tmp_path, plan)
    assert isinstance(events[0], ExperimentStarted)
    assert events[0].plan == plan
    assert events[-1] == ExperimentEnded(status="finished", detail="")
    counts = Counter(type(event) for event in events)
    assert counts == {
        ExperimentStarted: 1, WorkerStarted: 2, RunStarted: 2, RunReady: 2, EpisodeRecorded: 4, RunEvaluated: 2,
        MilestoneReleased: 4, LookTaken: 1, ExperimentEnded: 1,
    }
    by_run = {name: outcome.outcome for name, outcome in outcomes(fold(events)).items()}
    assert by_run["b/0"] - by_run["a/0"] == pytest.approx(10.0)


def test_a_point_is_released_after_every_record_of_it(tmp_path):
    events = conduct(tmp_path, fake_plans.plan(episodes=5))
    recorded = Counter()
    for event in events:
        if isinstance(event, EpisodeRecorded):
            recorded[event.record.episode] += 1
        if isinstance(event, MilestoneReleased) and 1 <= event.milestone <= 5:
            assert recorded[event.milestone - 1] == 2
            assert sorted(event.runs) == ["a/0", "b/0"]
    assert [event.milestone for event in of(MilestoneReleased, events)] == list(range(7))


@pytest.mark.parametrize("sync", ["lockstep", "independent"])
def test_nobody_is_released_before_that_is_in_the_journal(tmp_path, monkeypatch, sync):
    """Though every report comes again in the round of the first, when its release is decided and not yet written."""
    poll, send, released = Hub.poll, Hub.send, []

    def poll_twice(hub, timeout_s):
        heard = []
        for incoming in poll(hub, timeout_s):
            heard.append(incoming)
            yield incoming
        yield from (one for one in heard if isinstance(getattr(one, "message", None), Ready | EpisodeFinished))

    def note(hub, identity, message):
        if isinstance(message, Release):
            recorded = of(MilestoneReleased, read(tmp_path / JOURNAL_NAME))
            released.append(
                any(one.milestone == message.milestone and message.run_name in one.runs for one in recorded)
            )
        return send(hub, identity, message)

    monkeypatch.setattr(Hub, "poll", poll_twice)
    monkeypatch.setattr(Hub, "send", note)
    conduct(tmp_path, fake_plans.plan(sync=sync))
    assert len(released) >= 8
    assert all(released)


def test_several_blocks_on_one_pair_of_lanes_one_after_the_other(tmp_path):
    history = fold(conduct(tmp_path, fake_plans.plan(seeds=4)))
    assert {run.state for run in history.runs.values()} == {"finished"}
    assert len(history.workers) == 2


def test_several_blocks_at_once_when_lanes_allow(tmp_path):
    plan = fake_plans.plan(cores=4, seeds=4)
    assert len(plan.lanes) == 4
    events = conduct(tmp_path, plan)
    first_done = next(
        i for i, event in enumerate(events) if isinstance(event, MilestoneReleased) and event.milestone == 3
    )
    assert {event.run.replicate for event in of(RunStarted, events[:first_done])} == {0, 1}
    assert {run.state for run in fold(events).runs.values()} == {"finished"}


def test_independent_runs_do_not_wait_for_each_other(tmp_path):
    events = conduct(tmp_path, fake_plans.plan(sync="independent"))
    assert all(len(event.runs) == 1 for event in of(MilestoneReleased, events))
    assert {run.released for run in fold(events).runs.values()} == {3}


def test_alternating_runs_take_turns(tmp_path):
    plan = fake_plans.plan(cores=1, placement="alternate", episodes=6, groups=("a", "b", "c"))
    events = conduct(tmp_path, plan)
    at_work = [event.runs[0] for event in of(MilestoneReleased, events) if event.milestone < 7]
    reported = [event.record.run.name for event in events if isinstance(event, EpisodeRecorded | RunEvaluated)]
    assert reported == at_work
    orders = {tuple(at_work[i : i + 3]) for i in range(0, len(at_work), 3)}
    assert len(orders) > 1


def test_a_record_sent_twice_counts_once(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "twice:a/0:1,twice:b/0:3,twice:a/0:0")
    events = conduct(tmp_path, fake_plans.plan())
    assert (len(of(RunReady, events)), len(of(EpisodeRecorded, events)), len(of(RunEvaluated, events))) == (2, 4, 2)
    assert of(Incident, events) == []


def test_a_repeat_with_another_result_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "altered:a/0:1")
    (incidents,) = of(Incident, conduct(tmp_path, fake_plans.plan()))
    assert (incidents.category, incidents.run_name, incidents.episode) == ("inexact_resume", "a/0", 0)


def test_a_record_in_several_chunks_arrives(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "large:a/0:1")
    events = conduct(tmp_path, fake_plans.plan())
    assert max(len(event.record.seed_events) for event in of(EpisodeRecorded, events)) == 7_000


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise:b/0:2", "worker w01/3 on cpu:1 reported an error: RuntimeError: the planted error"),
        ("leave:b/0:2", r"worker w01/3 on cpu:1 ended with exit status .*in episode 1 of run b/0 \(last sign: train"),
        ("skip:b/0:1", "reports evaluation of b/0, but episode 0 is next|sent episode 2 of 2"),
        ("nan:b/0:2", r"not finite: record\.envs\[0\]\.outcome"),
        ("garbage:b/0:1", "keeps sending what is no message"),
        ("protocol:w01:0", "speaks protocol 99, but this is"),
    ],
)
def test_a_worker_that_no_restart_mends_ends_the_experiment_when_nothing_is_left(tmp_path, monkeypatch, fault, message):
    monkeypatch.setenv(FAULT_VARIABLE, fault)
    with pytest.raises(WorkerFailed, match=message) as caught:
        conduct(tmp_path, fake_plans.plan())
    assert ended(tmp_path) == "failed"
    deaths = [event for event in of(Incident, read(tmp_path / JOURNAL_NAME)) if event.category == "worker_death"]
    assert [f"w01/{n} on cpu:1" in death.detail for n, death in enumerate(deaths, 1)] == [True] * 3
    assert str(caught.value).startswith(deaths[-1].detail)


def test_an_error_shows_the_end_of_the_workers_log(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "raise:b/0:2")
    with pytest.raises(WorkerFailed) as caught:
        conduct(tmp_path, fake_plans.plan())
    _, heading, *log, why = str(caught.value).splitlines()
    assert heading == f"the end of {tmp_path / 'logs' / 'w01.log'}:"
    assert log[-1] == "  RuntimeError: the planted error"
    assert why == "every seed was given up: there is nothing to compare"


def test_a_hung_worker_is_named_with_its_last_sign_and_its_stacks(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "hang:a/0:1")
    with pytest.raises(WorkerHung) as caught:
        conduct(tmp_path, fake_plans.plan(), limits=Limits(floor_s=0.5, start_up_s=0.5))
    text = str(caught.value)
    assert "worker w00/3 on cpu:0 gave no sign of life" in text
    assert "in episode 0 of run a/0 (last sign: train, step 1)" in text
    assert "fake_worker.py" in text
    assert "w01/" not in text.splitlines()[0]
    assert ended(tmp_path) == "failed"


def test_one_bad_message_is_counted_and_the_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "slip:b/0:1")
    (incidents,) = of(Incident, conduct(tmp_path, fake_plans.plan()))
    assert (incidents.category, incidents.run_name) == ("bad_message", "b/0")


def test_a_stranger_changes_nothing(tmp_path, monkeypatch):
    """Somebody who may connect but is no worker, sending what workers send and worse."""
    endpoints = []
    admit = Hub.admit
    monkeypatch.setattr(Hub, "admit", lambda hub, identity: endpoints.append(hub.endpoint) or admit(hub, identity))
    context = zmq.Context()

    def intrude(event):
        if isinstance(event, RunReady):
            for identity in (b"w00/2", b"", b"\xff"):
                stranger = context.socket(zmq.DEALER)
                if identity:
                    stranger.setsockopt(zmq.IDENTITY, identity)
                stranger.connect(endpoints[0])
                stranger.send(b"hello")
                stranger.close(2000)

    events = conduct(tmp_path, fake_plans.plan(episodes=30), Watcher(intrude))
    context.term()
    assert {event.category for event in of(Incident, events)} <= {"bad_message"}
    assert {run.state for run in fold(events).runs.values()} == {"finished"}


def test_observers_are_told_everything_in_order_and_progress_as_well(tmp_path):
    watcher = Watcher()
    events = conduct(tmp_path, fake_plans.plan(), watcher)
    assert [event for event in watcher.seen if not isinstance(event, Progress)] == events
    assert {event.phase for event in of(Progress, watcher.seen)} == {"warm-up", "train", "evaluate"}


def test_an_observer_that_fails_is_told_no_more_and_breaks_nothing(tmp_path, caplog):
    watcher = Watcher(lambda event: 1 / 0)
    with caplog.at_level(logging.ERROR):
        events = conduct(tmp_path, fake_plans.plan(), watcher, Watcher())
    assert len(watcher.seen) == 1
    assert ended(tmp_path) == "finished"
    assert len(events) > 10
    assert len(caplog.records) == 1


def test_an_observer_that_is_stuck_does_not_stop_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("esper_ab.control.event_sink._CLOSE_S", 0.05)
    release = threading.Event()
    conduct(tmp_path, fake_plans.plan(), Watcher(lambda event: release.wait()))
    release.set()
    assert ended(tmp_path) == "finished"


def press_ctrl_c_at(milestone, times=1):
    def act(event):
        if isinstance(event, MilestoneReleased) and event.milestone == milestone:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)

    return Watcher(act)


def test_ctrl_c_once_finishes_the_barrier_in_progress(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match="after the barrier in progress") as caught:
        conduct(tmp_path, fake_plans.plan(episodes=400, seeds=2), press_ctrl_c_at(1))
    assert str(caught.value).splitlines()[-1] == f"to go on: esper-ab resume {tmp_path}"
    events = list(read(tmp_path / JOURNAL_NAME))
    assert ended(tmp_path) == "interrupted"
    assert [event.category for event in of(Incident, events)] == ["interrupted"]
    per_run = Counter(event.record.run.name for event in of(EpisodeRecorded, events))
    assert per_run["a/0"] == per_run["b/0"] < 400
    assert signal.getsignal(signal.SIGINT) is before


def test_the_command_that_goes_on_starts_workers_in_the_same_way(tmp_path):
    launcher = InlineLauncher("support.fake_worker:main_in_thread")
    launcher.flags = ("--launcher", "inline")
    with pytest.raises(Interrupted) as caught:
        run(fake_plans.plan(episodes=400), tmp_path, launcher, (press_ctrl_c_at(1),))
    assert str(caught.value).splitlines()[-1] == f"to go on: esper-ab resume {tmp_path} --launcher inline"


def test_ctrl_c_twice_stops_now(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "hang:a/0:2")
    with pytest.raises(Interrupted, match="second Ctrl-C"):
        conduct(tmp_path, fake_plans.plan(), TwoPresses())
    assert ended(tmp_path) == "interrupted"


class TwoPresses:
    """Ctrl-C when milestone 1 is released, and again once the first has been noted."""

    def observe(self, event):
        first = isinstance(event, MilestoneReleased) and event.milestone == 1
        if first or (isinstance(event, Incident) and event.category == "interrupted"):
            os.kill(os.getpid(), signal.SIGINT)


class PressedWhileLeaving(InlineLauncher):
    """Ctrl-C again at the first look for a worker that was told to leave, which has not left by then."""

    def start(self, order):
        return Leaving(super().start(order), self)


class Leaving:
    def __init__(self, worker, launcher):
        self._worker, self._launcher = worker, launcher

    def __getattr__(self, name):
        return getattr(self._worker, name)

    def join(self, timeout_s):
        if not hasattr(self._launcher, "pressed"):
            self._launcher.pressed = True
            os.kill(os.getpid(), signal.SIGINT)
            return False
        return self._worker.join(timeout_s)


def test_a_second_ctrl_c_that_comes_after_the_barrier_ends_the_workers_and_is_told_apart(tmp_path):
    launcher = PressedWhileLeaving("support.fake_worker:main_in_thread")
    with pytest.raises(Interrupted) as caught:
        run(fake_plans.plan(episodes=400), tmp_path, launcher, (press_ctrl_c_at(1),))
    said, go_on = str(caught.value).splitlines()
    assert said.startswith("stopped by Ctrl-C after the barrier in progress")
    assert "a further Ctrl-C, after that barrier" in said
    assert go_on.startswith("to go on: ")
    *_, last = events = list(read(tmp_path / JOURNAL_NAME))
    assert [event.category for event in of(Incident, events)] == ["interrupted"] * 2
    assert last.detail == said


def test_a_stop_that_takes_long_says_whom_it_waits_for(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "hang:a/0:2")
    said = []

    def told(event):
        if isinstance(event, str):
            said.append(event)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="second Ctrl-C"):
        conduct(tmp_path, fake_plans.plan(), press_ctrl_c_at(1), Watcher(told), limits=Limits(say_s=0.0))
    waits = next(line for line in said if "a/0" in line)
    assert waits.startswith("the stop waits for worker w00/1 on cpu:0, in ")
    assert waits.endswith("Ctrl-C ends it at once")


def test_a_experiment_directory_that_has_a_journal_is_refused(tmp_path):
    conduct(tmp_path, fake_plans.plan())
    with pytest.raises(UsageError, match="choose another name"):
        conduct(tmp_path, fake_plans.plan())
