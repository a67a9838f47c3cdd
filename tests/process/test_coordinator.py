"""The coordinator over real sockets, with workers that are threads without torch."""

import logging
import os
import signal
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.coordinators.disturbed import (
    THREADS,
    PressCtrlC,
    Watcher,
    events_of,
    events_of_kind,
    records,
    resume,
    resume_points,
    run,
)
from support.plans import fake_plans
from support.workers import fake_worker
from support.workers.fake_worker import FAULT_VARIABLE

from esper_ab.campaign.observers import make_observers
from esper_ab.contracts.errors import Interrupted, UsageError
from esper_ab.contracts.messages import Progress
from esper_ab.control.rules.limits import Limits
from esper_ab.journal.events import EpisodeRecorded, ExperimentEnded, ExperimentStarted, Incident
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes


def test_a_block_finishes_despite_resent_corrupt_and_chunked_messages(tmp_path, monkeypatch, caplog):
    """One record comes in chunks, one twice, one with a flipped bit; one observer raises."""
    monkeypatch.setenv(FAULT_VARIABLE, "large:a/0:1,twice:b/0:3,slip:b/0:1")
    plan = fake_plans.plan()
    watcher = Watcher()
    failing_watcher = Watcher(lambda event: 1 / 0)
    with caplog.at_level(logging.ERROR):
        events = run(tmp_path, plan, failing_watcher, watcher)
    assert isinstance(events[0], ExperimentStarted)
    assert events[0].plan == plan
    assert events[-1] == ExperimentEnded(status="finished", detail="")
    assert Counter(type(event).__name__ for event in events) == {
        "ExperimentStarted": 1,
        "WorkerStarted": 2,
        "RunStarted": 2,
        "RunReady": 2,
        "EpisodeRecorded": 4,
        "RunEvaluated": 2,
        "MilestoneReleased": 4,
        "LookTaken": 1,
        "ExperimentEnded": 1,
        "Incident": 1,
    }
    by_run = {name: outcome.outcome for name, outcome in outcomes(fold(events)).items()}
    assert by_run["b/0"] - by_run["a/0"] == pytest.approx(10.0)
    assert max(len(event.record.seed_events) for event in events_of_kind(EpisodeRecorded, events)) == 7_000
    (slip,) = events_of_kind(Incident, events)
    assert (slip.category, slip.run_name) == ("bad_message", "b/0")
    assert [event for event in watcher.events if not isinstance(event, Progress)] == events
    assert {event.phase for event in events_of_kind(Progress, watcher.events)} == {"warm-up", "train", "evaluate"}
    assert (len(failing_watcher.events), len(caplog.records)) == (1, 1)
    with pytest.raises(UsageError, match="choose another name"):
        run(tmp_path, plan)


def test_a_stuck_observer_does_not_stop_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("esper_ab.control.observers._CLOSE_S", 0.05)
    release = threading.Event()
    events = run(tmp_path, fake_plans.plan(), Watcher(lambda event: release.wait()))
    release.set()
    assert events[-1].status == "finished"


def test_a_relative_experiment_directory_survives_a_worker_that_changes_directory(tmp_path, monkeypatch):
    hello = fake_worker.hello
    monkeypatch.setattr(fake_worker, "hello", lambda order: os.chdir(tempfile.gettempdir()) or hello(order))
    monkeypatch.chdir(tmp_path)
    experiment_dir = Path("wandering")
    plan = fake_plans.plan()
    experiment_dir.mkdir()
    with ExitStack() as stack:
        observers = make_observers(stack, experiment_dir, plan, None, watched=False)
        events = run(experiment_dir, plan, *observers)
    assert Path.cwd() == tmp_path, "the working directory is restored"
    assert events[-1].status == "finished"
    written_names = {path.relative_to(experiment_dir).parts[0] for path in experiment_dir.rglob("*") if path.is_file()}
    assert written_names >= {"events.jsonl", "checkpoints", "runs"}


def test_ctrl_c_stops_at_the_barrier_with_the_resume_command(tmp_path, monkeypatch):
    handler = signal.getsignal(signal.SIGINT)
    plan = fake_plans.plan(episodes=40, seeds=2)
    monkeypatch.setattr(THREADS, "flags", ("--launcher", "inline"))
    with pytest.raises(Interrupted, match="after the current barrier") as caught:
        run(tmp_path, plan, PressCtrlC(1))
    assert str(caught.value).splitlines()[-1] == f"to go on: esper-ab resume {tmp_path} --launcher inline"
    events = events_of(tmp_path)
    assert events[-1].status == "interrupted"
    assert [event.category for event in events_of_kind(Incident, events)] == ["interrupted"]
    record_counts = Counter(event.record.run.name for event in events_of_kind(EpisodeRecorded, events))
    assert record_counts["a/0"] == record_counts["b/0"] < 40
    assert signal.getsignal(signal.SIGINT) is handler
    resumed_events = resume(tmp_path)
    assert records(resumed_events) == records(run(tmp_path / "whole", plan))
    assert resume_points(resumed_events)["a/0"] == [0, record_counts["a/0"]], "nothing is run again"


def test_a_second_ctrl_c_ends_a_slow_stop(tmp_path, monkeypatch):
    monkeypatch.setenv(FAULT_VARIABLE, "hang:a/0:2")
    notices = []

    def press_ctrl_c_again(event):
        if isinstance(event, str):
            notices.append(event)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="second Ctrl-C"):
        run(tmp_path, fake_plans.plan(), PressCtrlC(1), Watcher(press_ctrl_c_again), limits=Limits(say_s=0.0))
    assert events_of(tmp_path)[-1].status == "interrupted"
    waits = next(line for line in notices if "a/0" in line)
    assert waits.startswith("stopping; waiting for worker w00/1 on cpu:0, in ")
    assert waits.endswith("Ctrl-C stops at once")
