"""Tracker processes with their real libraries, offline, beside a run: they cannot affect it."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack

import psutil
import pytest
from support.coordinators import disturbed
from support.journals import ready_journals
from support.plans import fake_plans
from support.processes.children import python
from support.processes.waiting import eventually
from support.trackers import tracked_experiments
from support.trackers.tracked_experiments import PATIENCE_S, SMALL, track, tracker_contents

from esper_ab.analysis.result_hash import result_hash
from esper_ab.campaign.observers import make_observers
from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.fold import fold
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.trackers.beside import Trackers, start_tracking
from esper_ab.trackers.settings import NAMES, Tracking
from esper_ab.trackers.state import TrackerProgress, at_work, read_progress, save_settings, take, write_progress

pytestmark = [
    pytest.mark.filterwarnings("ignore:::tensorboard", "ignore:::google"),
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("trackers_offline"),
]


def tracker_pids(experiment_dir):
    """Return the pids of processes whose command line names `experiment_dir`."""
    processes = psutil.process_iter(["cmdline"])
    return [process.pid for process in processes if str(experiment_dir) in " ".join(process.info["cmdline"] or ())]


def run_with_trackers(experiment_dir, *observers):
    """Run an experiment with the observers of an unwatched launch and these, and return its events."""
    with ExitStack() as stack:
        plan = fake_plans.plan()
        usual_observers = make_observers(stack, experiment_dir, plan, None, watched=False)
        return disturbed.run(experiment_dir, plan, *usual_observers, *observers)


def test_tracking_a_live_run_equals_tracking_it_afterwards(tmp_path, capfd):
    plain_events = disturbed.run(tmp_path / "plain", fake_plans.plan())
    experiment_dir = tmp_path / "run"
    experiment_dir.mkdir()
    save_settings(experiment_dir, Tracking(wandb="offline", tensorboard=True))
    tracked_events = run_with_trackers(experiment_dir)
    assert "has stopped" not in capfd.readouterr().err
    assert result_hash(fold(tracked_events)) == result_hash(fold(plain_events))
    # trackers may finish later on a slow machine
    eventually(lambda: {read_progress(experiment_dir, name).state for name in NAMES} == {"done"})
    assert {name: read_progress(experiment_dir, name).lines for name in NAMES} == dict.fromkeys(
        NAMES, len(tracked_events)
    )
    eventually(lambda: not tracker_pids(experiment_dir))

    later_folder = tmp_path / "later"
    later_folder.mkdir()
    (later_folder / JOURNAL_NAME).write_bytes((experiment_dir / JOURNAL_NAME).read_bytes())
    track(later_folder)
    assert tracker_contents(experiment_dir) == tracker_contents(later_folder)


def test_trackers_that_raise_or_are_killed_do_not_affect_the_run(tmp_path, monkeypatch, capfd):
    """The run waits for its trackers up to the test's timeout, so their failures are reported."""

    def kill(event):
        if len(killer.events) == 1:
            os.kill(eventually(lambda: read_progress(experiment_dir, "wandb").pid), signal.SIGKILL)

    monkeypatch.setattr("esper_ab.trackers.beside._PATIENCE_S", PATIENCE_S)
    plain_events = disturbed.run(tmp_path / "plain", fake_plans.plan())
    experiment_dir = tmp_path / "run"
    experiment_dir.mkdir()
    (experiment_dir / "tensorboard").write_text("in the way")
    save_settings(experiment_dir, Tracking(wandb="offline", tensorboard=True))
    killer = disturbed.Watcher(kill)
    tracked_events = run_with_trackers(experiment_dir, killer)
    assert result_hash(fold(tracked_events)) == result_hash(fold(plain_events))
    warnings = capfd.readouterr().err
    assert "warning: wandb has stopped: its process is gone; the experiment is unaffected" in warnings
    assert f"warning: tensorboard has stopped: {experiment_dir / 'tensorboard'}: is not a folder" in warnings
    log = (experiment_dir / "logs" / "tracker-tensorboard.log").read_text()
    assert len(log.splitlines()) == 1
    assert log.startswith(f"error: tensorboard: {experiment_dir / 'tensorboard'}: is not a folder")
    eventually(lambda: not tracker_pids(experiment_dir))

    (experiment_dir / "tensorboard").unlink()
    track(experiment_dir, "--wandb", "--tensorboard")
    for runs in (tracked_experiments.wandb_runs, tracked_experiments.tensorboard_runs):
        assert set(runs(experiment_dir)) == {"a/0", "b/0", "comparison"}


HOLDER = (
    "import sys; from pathlib import Path; from esper_ab.journal.file import Journal\n"
    "journal, _ = Journal.take_up(Path(sys.argv[1]), list)\n"
    "print('held', flush=True); sys.stdin.read()\n"
)


def test_a_tracker_ends_after_its_coordinator_is_killed(tmp_path):
    events = SMALL.events()[:20]
    experiment_dir = ready_journals.write(tmp_path / "run", events)
    coordinator = subprocess.Popen(
        [sys.executable, "-c", HOLDER, experiment_dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with coordinator:
        assert coordinator.stdout.readline() == "held\n"
        start_tracking(experiment_dir, Tracking(tensorboard=True))
        event_files = experiment_dir / "tensorboard" / "shaped"
        eventually(lambda: list(event_files.rglob("events.*")))
        assert at_work(experiment_dir, "tensorboard")  # it waits for more events
        refused_result = python("-m", "esper_ab.commands.cli", "track", experiment_dir, "--tensorboard")
        assert (refused_result.returncode, "already follows this experiment" in refused_result.stderr) == (2, True)
        coordinator.kill()
    eventually(lambda: not at_work(experiment_dir, "tensorboard"))
    assert read_progress(experiment_dir, "tensorboard").state == "done"
    assert read_progress(experiment_dir, "tensorboard").lines == len(events)
    eventually(lambda: not tracker_pids(experiment_dir))


def test_a_silent_tracker_is_reported(tmp_path, monkeypatch, capfd):
    """The warning comes while the library loads, so it does not blame a server."""
    monkeypatch.setattr("esper_ab.trackers.beside._SILENT_S", 0.0)
    experiment_dir = ready_journals.write(tmp_path / "run", SMALL.events())
    assert invoke(group, ["track", str(experiment_dir), "--tensorboard"], "esper-ab") == 0
    reason = "its library loads slowly on a busy machine"
    (warning,) = capfd.readouterr().err.splitlines()
    assert warning == f"warning: tensorboard has reported nothing for 0 s and keeps trying: {reason}"


SILENT = (
    "import os, sys; from pathlib import Path; from esper_ab.trackers import process\n"
    "process._END_S, process._WATCH_S = 2.0, 0.05\n"
    "os._exit(process.main(Path(sys.argv[1]), 'wandb', live=True))\n"
)


def test_a_tracker_gives_up_on_a_server_that_never_answers(tmp_path):
    """W&B connects to a listening socket that is never read."""
    experiment_dir = ready_journals.write(tmp_path / "run", SMALL.events())
    save_settings(experiment_dir, Tracking(wandb="online"))
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        result = subprocess.run(
            [sys.executable, "-c", SILENT, experiment_dir],
            timeout=PATIENCE_S,
            check=False,
            env=os.environ
            | {
                "WANDB_MODE": "online",
                "WANDB_API_KEY": "0" * 40,
                "no_proxy": "127.0.0.1",
                "NO_PROXY": "127.0.0.1",
                "WANDB_BASE_URL": f"http://127.0.0.1:{silent_server.getsockname()[1]}",
            },
        )
    assert result.returncode == 1
    assert "no progress for 2 s after the run ended" in read_progress(experiment_dir, "wandb").detail
    eventually(lambda: not tracker_pids(experiment_dir))


def test_a_new_tracker_ignores_the_state_of_an_earlier_tracker(tmp_path, capfd):
    """After a resume, the earlier tracker may still run."""
    experiment_dir = ready_journals.write(tmp_path / "run", SMALL.events()[:20])
    trackers = Trackers(experiment_dir, Tracking(tensorboard=True))
    lock = take(experiment_dir, "tensorboard")
    trackers.observe(SMALL.events()[1])
    write_progress(experiment_dir, "tensorboard", TrackerProgress(state="failed", detail="what the earlier one said"))
    trackers.observe(next(event for event in SMALL.events() if isinstance(event, MilestoneReleased)))
    os.close(lock)
    trackers.settle(None)
    assert "has stopped" not in capfd.readouterr().err
    eventually(lambda: read_progress(experiment_dir, "tensorboard").state == "done")
