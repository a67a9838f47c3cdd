"""The coordinator over real sockets, with workers that are threads and have no torch."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import Counter

import pytest
from support import fake_plans
from support.conducted import Watcher, of
from support.fake_worker import FAULT_VARIABLE

from esper_ab.contracts.errors import Interrupted, UsageError, WorkerFailed
from esper_ab.contracts.messages import EpisodeFinished, Progress, Ready, Release
from esper_ab.control.experiment_run import resume, run
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


def test_one_block_from_start_to_end_with_what_costs_nothing_on_the_way(tmp_path, monkeypatch, caplog):
    """A record in several chunks, one that is sent twice, a flipped bit, and an observer that fails."""
    monkeypatch.setenv(FAULT_VARIABLE, "large:a/0:1,twice:b/0:3,slip:b/0:1")
    plan, watcher, failing = fake_plans.plan(), Watcher(), Watcher(lambda event: 1 / 0)
    with caplog.at_level(logging.ERROR):
        events = conduct(tmp_path, plan, failing, watcher)
    assert isinstance(events[0], ExperimentStarted)
    assert events[0].plan == plan
    assert events[-1] == ExperimentEnded(status="finished", detail="")
    counts = Counter(type(event) for event in events)
    assert counts == {
        ExperimentStarted: 1, WorkerStarted: 2, RunStarted: 2, RunReady: 2, EpisodeRecorded: 4, RunEvaluated: 2,
        MilestoneReleased: 4, LookTaken: 1, ExperimentEnded: 1, Incident: 1,
    }
    by_run = {name: outcome.outcome for name, outcome in outcomes(fold(events)).items()}
    assert by_run["b/0"] - by_run["a/0"] == pytest.approx(10.0)
    assert max(len(event.record.seed_events) for event in of(EpisodeRecorded, events)) == 7_000
    (slip,) = of(Incident, events)
    assert (slip.category, slip.run_name) == ("bad_message", "b/0")
    assert [event for event in watcher.seen if not isinstance(event, Progress)] == events
    assert {event.phase for event in of(Progress, watcher.seen)} == {"warm-up", "train", "evaluate"}
    assert (len(failing.seen), len(caplog.records)) == (1, 1)
    with pytest.raises(UsageError, match="choose another name"):
        conduct(tmp_path, plan)


def test_nobody_is_released_before_that_is_in_the_journal(tmp_path, monkeypatch):
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
    conduct(tmp_path, fake_plans.plan())
    assert len(released) >= 8
    assert all(released)


def test_a_worker_that_no_restart_mends_ends_the_experiment_with_the_end_of_its_log(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "raise:b/0:2")
    with pytest.raises(WorkerFailed) as caught:
        conduct(tmp_path, fake_plans.plan())
    assert ended(tmp_path) == "failed"
    deaths = [event for event in of(Incident, read(tmp_path / JOURNAL_NAME)) if event.category == "worker_death"]
    assert [f"w01/{n} on cpu:1" in death.detail for n, death in enumerate(deaths, 1)] == [True] * 3
    first, heading, *log, why = str(caught.value).splitlines()
    assert first == deaths[-1].detail
    assert "worker w01/3 on cpu:1 reported an error: RuntimeError: the planted error" in first
    assert heading == f"the end of {tmp_path / 'logs' / 'w01.log'}:"
    assert log[-1] == "  RuntimeError: the planted error"
    assert why == "every seed was given up, so there is nothing to compare"
    with pytest.raises(UsageError, match="every seed was given up"):
        resume(tmp_path, LAUNCHER, ())


def test_an_observer_that_is_stuck_does_not_stop_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("esper_ab.control.event_sink._CLOSE_S", 0.05)
    release = threading.Event()
    conduct(tmp_path, fake_plans.plan(), Watcher(lambda event: release.wait()))
    release.set()
    assert ended(tmp_path) == "finished"


def press_ctrl_c_at(milestone):
    def act(event):
        if isinstance(event, MilestoneReleased) and event.milestone == milestone:
            os.kill(os.getpid(), signal.SIGINT)

    return Watcher(act)


def test_ctrl_c_once_finishes_the_barrier_in_progress_and_says_how_to_go_on_in_the_same_way(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    launcher = InlineLauncher("support.fake_worker:main_in_thread")
    launcher.flags = ("--launcher", "inline")
    with pytest.raises(Interrupted, match="after the current barrier") as caught:
        run(fake_plans.plan(episodes=400, seeds=2), tmp_path, launcher, (press_ctrl_c_at(1),))
    assert str(caught.value).splitlines()[-1] == f"to go on: esper-ab resume {tmp_path} --launcher inline"
    events = list(read(tmp_path / JOURNAL_NAME))
    assert ended(tmp_path) == "interrupted"
    assert [event.category for event in of(Incident, events)] == ["interrupted"]
    per_run = Counter(event.record.run.name for event in of(EpisodeRecorded, events))
    assert per_run["a/0"] == per_run["b/0"] < 400
    assert signal.getsignal(signal.SIGINT) is before


def test_a_stop_that_takes_long_says_whom_it_waits_for_and_a_second_ctrl_c_ends_it(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "hang:a/0:2")
    said = []

    def told(event):
        if isinstance(event, str):
            said.append(event)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="second Ctrl-C"):
        conduct(tmp_path, fake_plans.plan(), press_ctrl_c_at(1), Watcher(told), limits=Limits(say_s=0.0))
    assert ended(tmp_path) == "interrupted"
    waits = next(line for line in said if "a/0" in line)
    assert waits.startswith("stopping; waiting for worker w00/1 on cpu:0, in ")
    assert waits.endswith("Ctrl-C stops at once")
