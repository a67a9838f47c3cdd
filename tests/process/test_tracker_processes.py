"""Trackers with their real libraries, offline: what they hold is the journal; nothing they do reaches the run."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import conducted, fake_plans, journals, tracked
from support.mlflow_server import serving

from esper_ab.analysis.result_hash import result_hash
from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.execution.experiment import make_observers
from esper_ab.journal.events import ExperimentEnded, MilestoneReleased
from esper_ab.journal.file import JOURNAL_NAME, Journal
from esper_ab.journal.fold import fold
from esper_ab.trackers.beside import Trackers, start_tracking
from esper_ab.trackers.numbers import episode_numbers, evaluation_numbers
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.state import FOLDER, TrackerProgress, at_work, read_progress, save_settings, take, write_progress
from esper_ab.trackers.subject import NAMES

pytestmark = [
    pytest.mark.filterwarnings("ignore:::mlflow", "ignore:::tensorboard", "ignore:::google"),
    pytest.mark.timeout(1800),
]

PATIENCE_S = 600.0  # libraries that load in seconds take minutes on a machine that is fifteen times overloaded
SMALL = journals.Synthetic(replicates=2, episodes=3, n_envs=2, steps=10, eval_hosts=2)


@pytest.fixture(autouse=True, scope="module")
def _offline():
    """No tracker of a test can reach anything: a proxy that nobody listens at, and no key."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.setenv(name, "http://127.0.0.1:9")
        patch.setenv("WANDB_MODE", "offline")
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # for what the tests read
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield


def store(experiment_dir):
    return f"file://{experiment_dir}-mlruns"


def track(experiment_dir, *flags):
    """`esper-ab track` with all trackers unless told otherwise; its JSON."""
    flags = flags or ("--wandb", "--tensorboard", "--mlflow", "--uri", store(experiment_dir))
    line = [sys.executable, "-m", "esper_ab.commands.cli", "track", str(experiment_dir), "--json", *flags]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def held(experiment_dir, name):
    """All that the trackers hold."""
    return (
        tracked.wandb_runs(experiment_dir), tracked.files_below(experiment_dir / "tensorboard"),
        tracked.mlflow_runs(store(experiment_dir), name),
    )  # fmt: skip


def stray(experiment_dir):
    """Processes that have to do with `experiment_dir`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(experiment_dir).encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def eventually(what):
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A finished run, and all trackers filled from its journal."""
    experiment_dir = journals.write(tmp_path_factory.mktemp("filled") / "run", SMALL.events())
    said = track(experiment_dir)
    assert {name: one["state"] for name, one in said.items()} == dict.fromkeys(NAMES, "done")
    assert {one["lines"] for one in said.values()} == {len(SMALL.events())}
    return experiment_dir


@pytest.fixture(scope="module")
def history():
    return fold(SMALL.events())


def test_wandb_holds_the_journal(filled, history):
    runs = tracked.wandb_runs(filled)
    assert set(runs) == {*history.runs, "comparison"}
    for name, run in history.runs.items():
        there = runs[name]
        assert (there["project"], there["group"]) == ("ab_test_synthetic_20260101", "synthetic")
        assert there["tags"] == (run.ref.group_id,)
        assert there["config"]["ppo"]["lr"] == run.spec.settings.ppo.lr
        assert there["config"]["replicate"] == run.ref.replicate
        assert there["history"] == {step: episode_numbers(record) for step, record in run.episodes.items()}
        expected = evaluation_numbers(history, name)
        assert {key: there["summary"][key] for key in expected} == expected
        assert there["exit"] == 0
    assert "shaped-simplified/verdict" in runs["comparison"]["summary"]


def test_tensorboard_holds_the_journal(filled, history):
    runs = tracked.tensorboard_runs(filled)
    assert set(runs) == {*history.runs, "comparison"}
    for name, run in history.runs.items():
        scalars, texts, settings = runs[name]
        expected = {}
        for step, record in run.episodes.items():
            for key, value in episode_numbers(record).items():
                expected.setdefault(key, {})[step] = pytest.approx(value, rel=1e-6)  # 32 bits
        for key, value in evaluation_numbers(history, name).items():
            expected[key] = {run.spec.episodes: pytest.approx(value, rel=1e-6)}
        assert scalars == expected
        assert texts["digest"] == run.evaluation.digest
        assert settings["reward.mode"] == run.ref.reward_mode
    assert "shaped-simplified/sentence" in runs["comparison"][1]


def test_mlflow_holds_the_journal(filled, history):
    runs = tracked.mlflow_runs(store(filled), "synthetic")
    assert set(runs) == {*history.runs, "comparison"}
    for name, run in history.runs.items():
        metrics, params, tags, status = runs[name]
        expected = {}
        for step, record in run.episodes.items():
            for key, value in episode_numbers(record).items():
                expected.setdefault(key, []).append((step, value))
        for key, value in evaluation_numbers(history, name).items():
            expected.setdefault(key, []).append((run.spec.episodes, value))
        assert {key: [one[:2] for one in values] for key, values in metrics.items()} == expected
        assert params["ppo.lr"] == str(run.spec.settings.ppo.lr)
        assert tags["esper_ab.digest"] == run.evaluation.digest
        assert status == "FINISHED"
    assert "esper_ab.shaped-simplified/verdict" in runs["comparison"][2]


def test_twice_is_once(filled):
    before, folders = held(filled, "synthetic"), sorted(path.name for path in (filled / "wandb").glob("offline-*"))
    track(filled)
    assert held(filled, "synthetic") == before
    assert sorted(path.name for path in (filled / "wandb").glob("offline-*")) == folders  # not written anew


@pytest.mark.slow
def test_a_run_that_stopped_and_went_on_is_held_as_if_it_had_not(filled, tmp_path):
    """Stopped in the second block, filled, gone on with, filled again by what was remembered."""
    events = SMALL.events()
    half = len(events) * 2 // 3
    experiment_dir = journals.write(tmp_path / "run", events[:half])
    said = track(experiment_dir)
    assert {one["lines"] for one in said.values()} == {half}
    before = held(experiment_dir, "synthetic")
    assert any(run["exit"] == 1 for run in before[0].values())
    assert any(status == "KILLED" for *_, status in before[2].values())
    (experiment_dir / JOURNAL_NAME).unlink()
    journals.write(experiment_dir, events)
    track(experiment_dir, "--follow")  # no tracker is named: those of the first time
    assert held(experiment_dir, "synthetic") == held(filled, "synthetic")


def test_a_run_that_is_followed_gives_the_same_records_and_trackers_what_back_fill_gives(tmp_path, capfd):
    plain = conducted.run(tmp_path / "plain", fake_plans.plan())
    experiment_dir = tmp_path / "run"
    experiment_dir.mkdir()
    save_settings(
        experiment_dir, Tracking(wandb="offline", tensorboard=True, mlflow=True, mlflow_uri=store(experiment_dir))
    )
    with ExitStack() as stack:
        plan = fake_plans.plan()
        followed = conducted.run(
            experiment_dir, plan, *make_observers(stack, experiment_dir, plan, None, watched=False)
        )
    assert "has stopped" not in capfd.readouterr().err
    assert result_hash(fold(followed)) == result_hash(fold(plain))
    # on a slow machine, later
    eventually(lambda: {read_progress(experiment_dir, name).state for name in NAMES} == {"done"})
    assert {name: read_progress(experiment_dir, name).lines for name in NAMES} == dict.fromkeys(NAMES, len(followed))
    eventually(lambda: not stray(experiment_dir))

    later = tmp_path / "later"
    later.mkdir()
    (later / JOURNAL_NAME).write_bytes((experiment_dir / JOURNAL_NAME).read_bytes())
    track(later)
    assert held(experiment_dir, "fake") == held(later, "fake")


class Killer:
    """An observer that kills a tracker as soon as it has one."""

    def __init__(self, experiment_dir, name):
        self._experiment_dir, self._name = experiment_dir, name
        self.killed = 0

    def observe(self, event):
        if not self.killed:
            eventually(lambda: read_progress(self._experiment_dir, self._name).pid)
            self.killed = read_progress(self._experiment_dir, self._name).pid
            os.kill(self.killed, signal.SIGKILL)


@pytest.fixture
def _patient(monkeypatch):
    """The end of a run waits for its trackers as long as a test does: what becomes of them is told then."""
    monkeypatch.setattr("esper_ab.trackers.beside._PATIENCE_S", PATIENCE_S)


@pytest.mark.usefixtures("_patient")
def test_trackers_that_raise_and_are_killed_do_not_concern_the_run(tmp_path, capfd):
    plain = conducted.run(tmp_path / "plain", fake_plans.plan())
    experiment_dir = tmp_path / "run"
    experiment_dir.mkdir()
    (experiment_dir / "tensorboard").write_text("in the way")
    save_settings(experiment_dir, Tracking(wandb="offline", tensorboard=True))
    killer = Killer(experiment_dir, "wandb")
    with ExitStack() as stack:
        plan = fake_plans.plan()
        told = make_observers(stack, experiment_dir, plan, None, watched=False)
        followed = conducted.run(experiment_dir, plan, *told, killer)
    assert result_hash(fold(followed)) == result_hash(fold(plain))
    said = capfd.readouterr().err
    assert "warning: wandb has stopped: its process is gone; the experiment is not concerned" in said
    assert "warning: tensorboard has stopped: NotRegular" in said
    log = (experiment_dir / "logs" / "tracker-tensorboard.log").read_text()
    assert len(log.splitlines()) == 1
    assert log.startswith("error: tensorboard: NotRegular")
    eventually(lambda: not stray(experiment_dir))

    (experiment_dir / "tensorboard").unlink()
    track(experiment_dir, "--wandb", "--tensorboard")
    assert (
        set(tracked.wandb_runs(experiment_dir))
        == set(tracked.tensorboard_runs(experiment_dir))
        == {"a/0", "b/0", "comparison"}
    )


HOLDER = (
    "import sys; from pathlib import Path; from esper_ab.journal.file import Journal\n"
    "journal, _ = Journal.take_up(Path(sys.argv[1]), list)\n"
    "print('held', flush=True); sys.stdin.read()\n"
)


def test_a_tracker_ends_when_the_coordinator_was_killed(tmp_path):
    events = SMALL.events()[:20]
    experiment_dir = journals.write(tmp_path / "run", events)
    coordinator = subprocess.Popen(
        [sys.executable, "-c", HOLDER, experiment_dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with coordinator:
        assert coordinator.stdout.readline() == "held\n"
        start_tracking(experiment_dir, Tracking(tensorboard=True))
        event_files = experiment_dir / "tensorboard" / "shaped"
        eventually(lambda: list(event_files.rglob("events.*")))
        assert at_work(experiment_dir, "tensorboard")  # there is nothing more, and it waits
        refused = subprocess.run(
            [sys.executable, "-m", "esper_ab.commands.cli", "track", experiment_dir, "--tensorboard"],
            capture_output=True, text=True
        )
        assert (refused.returncode, "follows this run already" in refused.stderr) == (2, True)
        coordinator.kill()
    eventually(lambda: not at_work(experiment_dir, "tensorboard"))
    assert read_progress(experiment_dir, "tensorboard").state == "done"
    assert read_progress(experiment_dir, "tensorboard").lines == len(events)
    eventually(lambda: not stray(experiment_dir))


def test_a_tracker_sees_what_is_written_while_it_follows(tmp_path):
    events = SMALL.events()
    experiment_dir = journals.write(tmp_path / "run", events[:20])
    journal, _ = Journal.take_up(experiment_dir, list)
    start_tracking(experiment_dir, Tracking(tensorboard=True))
    eventually(lambda: (experiment_dir / "tensorboard" / "shaped" / "0").exists())
    for event in events[20:-1]:
        journal.append(event)
    journal.commit()
    eventually(lambda: (experiment_dir / "tensorboard" / "shaped" / "1").exists())
    assert at_work(experiment_dir, "tensorboard")
    journal.append(ExperimentEnded(status="finished", detail=""))
    journal.commit()
    journal.close()
    eventually(lambda: read_progress(experiment_dir, "tensorboard").state == "done")
    assert read_progress(experiment_dir, "tensorboard").lines == len(events)


def test_a_damaged_line_is_told_and_nothing_behind_it(tmp_path):
    experiment_dir = journals.write(tmp_path / "run", SMALL.events())
    lines = (experiment_dir / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    lines[18] = lines[18].replace(b'"kind"', b'"kinds"')
    (experiment_dir / JOURNAL_NAME).write_bytes(b"".join(lines))
    start_tracking(experiment_dir, Tracking(tensorboard=True))
    eventually(lambda: read_progress(experiment_dir, "tensorboard").state == "failed")
    assert "line 19" in read_progress(experiment_dir, "tensorboard").detail
    eventually(lambda: not stray(experiment_dir))
    assert (experiment_dir / FOLDER / "settings.json").exists()


def test_wandb_online_without_a_key_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    experiment_dir = journals.write(tmp_path / "run", SMALL.events())
    line = [sys.executable, "-m", "esper_ab.commands.cli", "track", str(experiment_dir), "--wandb", "online"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    (said,) = [line for line in done.stderr.splitlines() if "goes on trying" not in line]
    assert said.startswith("warning: wandb: ")
    assert "key" in said.lower()


@pytest.fixture
def port():
    """Of this machine; nobody listens there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.usefixtures("_patient")
def test_a_server_that_is_not_there_costs_the_run_nothing_and_is_filled_when_it_is(tmp_path, monkeypatch, capfd, port):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    plain = conducted.run(tmp_path / "plain", fake_plans.plan())
    experiment_dir = tmp_path / "run"
    experiment_dir.mkdir()
    save_settings(experiment_dir, Tracking(mlflow=True, mlflow_uri=f"http://127.0.0.1:{port}"))
    with ExitStack() as stack:
        plan = fake_plans.plan()
        followed = conducted.run(
            experiment_dir, plan, *make_observers(stack, experiment_dir, plan, None, watched=False)
        )
    assert result_hash(fold(followed)) == result_hash(fold(plain))
    (said,) = [line for line in capfd.readouterr().err.splitlines() if "mlflow" in line]
    assert said.startswith("warning: mlflow has stopped: MlflowException: API request to http://127.0.0.1:")
    assert said.endswith(f"`esper-ab track {experiment_dir}` fills in what is missing")
    eventually(lambda: not stray(experiment_dir))

    with serving(port, store(experiment_dir)) as unknown:
        assert track(experiment_dir, "--mlflow")["mlflow"]["state"] == "done"
        first = tracked.mlflow_runs(store(experiment_dir), "fake")
        track(experiment_dir, "--mlflow")  # twice is once
    assert unknown == []
    assert set(first) == {"a/0", "b/0", "comparison"}
    assert {name: run[3] for name, run in first.items()} == dict.fromkeys(first, "FINISHED")
    assert len(first["a/0"][0]["train/outcome"]) == fold(plain).runs["a/0"].spec.episodes
    assert tracked.mlflow_runs(store(experiment_dir), "fake") == first


def test_what_takes_long_without_a_word_is_said_to(tmp_path, monkeypatch, capfd, port):
    """The line is there before the library is: it does not ask after a server that nobody has asked yet."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    monkeypatch.setattr("esper_ab.trackers.beside._SILENT_S", 0.0)
    experiment_dir = journals.write(tmp_path / "run", SMALL.events())
    line = ["track", str(experiment_dir), "--mlflow", "--uri", f"http://127.0.0.1:{port}"]
    assert invoke(group, line, "esper-ab") == 1
    silent, failed = capfd.readouterr().err.splitlines()
    why = "its library takes long to load where much else runs"
    assert silent == f"warning: mlflow has told nothing for 0 s and goes on trying: {why}"
    assert failed.startswith("warning: mlflow: MlflowException: API request to")


HANGS = (
    "import os, sys, time; from pathlib import Path; from esper_ab.trackers import process\n"
    "process._END_S, process._WATCH_S = 0.2, 0.05\n"
    "process._MAKERS['tensorboard'] = lambda *_: time.sleep(1000)\n"
    "os._exit(process.main(Path(sys.argv[1]), 'tensorboard', live=True))\n"
)


def test_a_library_that_hangs_does_not_outlive_the_run(tmp_path):
    experiment_dir = journals.write(tmp_path / "run", SMALL.events())
    save_settings(experiment_dir, Tracking(tensorboard=True))
    done = subprocess.run([sys.executable, "-c", HANGS, experiment_dir], timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert "nothing moved" in read_progress(experiment_dir, "tensorboard").detail


def test_a_word_of_an_earlier_tracker_is_not_taken_for_that_of_the_one_started_here(tmp_path, capfd):
    """As after a resume while the earlier one was still at work."""
    experiment_dir = journals.write(tmp_path / "run", SMALL.events()[:20])
    trackers = Trackers(experiment_dir, Tracking(tensorboard=True))
    lock = take(experiment_dir, "tensorboard")
    trackers.observe(SMALL.events()[1])
    write_progress(experiment_dir, "tensorboard", TrackerProgress(state="failed", detail="what the earlier one said"))
    trackers.observe(next(event for event in SMALL.events() if isinstance(event, MilestoneReleased)))
    os.close(lock)
    trackers.settle(None)
    assert "has stopped" not in capfd.readouterr().err
    eventually(lambda: read_progress(experiment_dir, "tensorboard").state == "done")
