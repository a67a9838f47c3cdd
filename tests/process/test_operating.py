"""Operating a run over SSH: it outlives its terminal and its parent, is watched, read and stopped from elsewhere."""

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from support import children, conducted
from support.being_killed import worker_pids
from support.fake_worker import FAULT_VARIABLE
from support.patience import eventually

from esper_ab.contracts.process_start import process_started
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME, holder
from esper_ab.journal.reading import read
from esper_ab.live.console import CONSOLE_NAME
from esper_ab.report.build import build_report

PATIENCE_S = 120.0
EPISODES = 300  # a second or two of work for workers that do none
ENDLESS = 100_000


def under_way(experiment_dir):
    """Some episodes are recorded."""
    journal = experiment_dir / JOURNAL_NAME
    return journal.exists() and any(
        isinstance(event, MilestoneReleased) and event.milestone > 2 for event in read(journal)
    )


@pytest.fixture
def environment():
    """Of every process here; sockets in a folder of their own, with a short name, and nothing left in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield children.environment(TMPDIR=folder, COLUMNS="100")
        assert list(Path(folder).iterdir()) == []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    experiment_dir = tmp_path_factory.mktemp("undisturbed") / "run"
    start(experiment_dir, EPISODES, children.environment()).communicate()
    return conducted.digests(experiment_dir)


def start(experiment_dir, episodes, environment, **how):
    command = [sys.executable, "-m", "support.fake_experiment", str(experiment_dir), str(episodes), "--live"]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | how
    return subprocess.Popen(command, env=environment, start_new_session=True, **how)


@pytest.fixture
def begun(tmp_path, environment):
    """Starts a run, and returns its directory and its process when it is under way."""

    def begin(episodes=ENDLESS, **changes):
        process = start(tmp_path / "run", episodes, environment | changes)
        eventually(lambda: under_way(tmp_path / "run"))
        return tmp_path / "run", process

    return begin


def operate(environment, *args):
    command = [sys.executable, "-m", "esper_ab.commands.cli", *map(str, args)]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def told(process):
    out, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, out + error
    return out


class Terminal:
    """A pseudo-terminal that somebody reads until it is hung up."""

    def __init__(self, *, controlling):
        self._master, self._slave = pty.openpty()
        self._controlling = controlling
        self.shown = b""
        self._reader = threading.Thread(target=self._read)
        self._hung_up, self._hang_up = os.pipe()
        self._reader.start()

    def _read(self):
        while self._hung_up not in (ready := select.select([self._master, self._hung_up], [], [])[0]):
            assert ready
            with suppress(OSError):
                self.shown += os.read(self._master, 4096)
        os.close(self._master)

    def _adopt(self):
        if self._controlling:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    @property
    def as_streams(self):
        return dict.fromkeys(("stdin", "stdout", "stderr"), self._slave) | {"preexec_fn": self._adopt}

    def close(self):
        """What sshd does when the connection is gone."""
        os.write(self._hang_up, b"!")
        self._reader.join()
        for descriptor in (self._slave, self._hung_up, self._hang_up):
            os.close(descriptor)


@pytest.mark.parametrize("controlling", [True, False], ids=["sighup", "only-eio"])
def test_a_run_whose_terminal_hangs_up_goes_on_to_the_same_records(tmp_path, environment, undisturbed, controlling):
    experiment_dir = tmp_path / "run"
    terminal = Terminal(controlling=controlling)
    process = start(experiment_dir, EPISODES, environment, **terminal.as_streams)
    try:
        eventually(lambda: under_way(experiment_dir) and b"held-out" in terminal.shown)
        process.send_signal(signal.SIGSTOP)  # however fast the machine is, it is not over before the hang-up
    finally:
        terminal.close()
    assert not any(run.evaluation for run in load(experiment_dir).history.runs.values()), "it was over before"
    process.send_signal(signal.SIGCONT)
    assert process.wait(PATIENCE_S) == 0
    assert b"held-out" in terminal.shown
    assert conducted.digests(experiment_dir) == undisturbed
    console = (experiment_dir / CONSOLE_NAME).read_text()
    assert "the terminal has closed" in console
    assert console.rstrip().endswith("the summary")
    assert "\x1b" not in console  # lines, no redrawing
    assert "look at 1 seed" in console
    assert "Traceback" not in console


def interrupt(viewer):
    """Ctrl-C, again when it was not heeded: Python drops an interrupt that falls into a callback of the interpreter."""
    while viewer.poll() is None:
        viewer.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            viewer.wait(5.0)


def test_viewers_come_and_go_without_effect(begun, environment, undisturbed):
    experiment_dir, process = begun(EPISODES)
    process.send_signal(signal.SIGSTOP)  # however fast the machine is, it is not over before the viewers are there
    killed = [operate(environment, "status", "-f", experiment_dir, "--json") for _ in range(3)]
    left, staying = (operate(environment, "status", "-f", experiment_dir) for _ in range(2))
    for viewer in killed:
        assert json.loads(viewer.stdout.readline())["state"] == "running"
        viewer.kill()
        viewer.communicate()
    for viewer in (left, staying):
        assert viewer.stdout.readline().startswith("fake: running")
    interrupt(left)
    assert "view closed; the experiment continues" in told(left)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=PATIENCE_S)
    build_report(experiment_dir)  # the last that a viewer waits for
    assert "fake: finished" in told(staying)
    assert process.returncode == 0
    assert conducted.digests(experiment_dir) == undisturbed


def test_stop_ends_a_run_as_ctrl_c_does(begun, environment):
    experiment_dir, process = begun()
    answer = json.loads(told(operate(environment, "stop", experiment_dir, "--json")))
    assert (answer["stopped"], answer["state"]) == (True, "interrupted")
    assert "stopped by Ctrl-C after the current barrier" in answer["detail"]
    assert answer["resume"] == f"esper-ab resume {experiment_dir}"
    assert process.wait(PATIENCE_S) == 130
    process.communicate()
    assert not holder(experiment_dir)
    assert conducted.events_of(experiment_dir)[-1].status == "interrupted"
    assert [pid for pid in worker_pids(experiment_dir) if process_started(pid) is not None] == []
    again = told(operate(environment, "stop", experiment_dir))
    assert "not running; it is interrupted" in again
    assert f"resume with: esper-ab resume {experiment_dir}" in again


def test_stop_now_waits_for_no_barrier_and_logs_are_followed_to_the_end(begun, environment):
    experiment_dir, process = begun(**{FAULT_VARIABLE: "hang:a/0:9"})
    following = operate(environment, "logs", experiment_dir, "-f")
    assert following.stdout.readline().endswith("| about to hang\n")
    assert "stopped at once" in told(operate(environment, "stop", experiment_dir, "--now"))
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    told(following)


def test_a_dead_run_is_told_from_a_running_one(begun, tmp_path, environment):
    experiment_dir, process = begun()
    refused = operate(environment, "tidy", experiment_dir)
    assert f"in use by process {process.pid} on " in refused.communicate()[1]
    assert refused.returncode == 2
    process.kill()
    process.communicate()
    eventually(lambda: all(process_started(pid) is None for pid in worker_pids(experiment_dir)))
    assert "coordinator is gone" in told(operate(environment, "status", "-f", experiment_dir))
    assert json.loads(told(operate(environment, "list", tmp_path, "--json")))[0]["state"] == "stale"
    answer = json.loads(told(operate(environment, "stop", experiment_dir, "--json")))
    assert (answer["stopped"], answer["state"]) == (False, "stale")
    told(operate(environment, "logs", experiment_dir))
    with suppress(FileNotFoundError):  # a killed coordinator cannot remove its sockets
        for left in Path(environment["TMPDIR"]).iterdir():
            for socket in left.iterdir():
                socket.unlink()
            left.rmdir()
