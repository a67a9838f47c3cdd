"""Operating a run over SSH: it survives its terminal, and other terminals can watch and stop it."""

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
from support.coordinators import disturbed
from support.coordinators.killed_processes import worker_pids
from support.processes import children
from support.processes.waiting import eventually
from support.workers.fake_worker import FAULT_VARIABLE

from esper_ab.contracts.process_start import process_started
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME, holder
from esper_ab.journal.reading import read
from esper_ab.live.console import CONSOLE_NAME
from esper_ab.report.build import build_report

PATIENCE_S = 120.0
EPISODES = 300  # take fake workers a second or two
ENDLESS = 100_000


def has_episodes(experiment_dir):
    """True once a few episodes are recorded."""
    journal = experiment_dir / JOURNAL_NAME
    return journal.exists() and any(
        isinstance(event, MilestoneReleased) and event.milestone > 2 for event in read(journal)
    )


@pytest.fixture
def environment():
    """Yield the environment of all processes, with a short folder for sockets that must be empty at the end."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield children.environment(TMPDIR=folder, COLUMNS="100")
        assert list(Path(folder).iterdir()) == []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    experiment_dir = tmp_path_factory.mktemp("undisturbed") / "run"
    start(experiment_dir, EPISODES, children.environment()).communicate()
    return disturbed.digests(experiment_dir)


def start(experiment_dir, episodes, environment, **options):
    command = [
        sys.executable,
        "-m",
        "support.coordinators.fake_experiment",
        str(experiment_dir),
        str(episodes),
        "--live",
    ]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options
    return subprocess.Popen(command, env=environment, start_new_session=True, **options)


@pytest.fixture
def start_run(tmp_path, environment):
    """Return a function that starts a run and returns its directory and process once it has recorded episodes."""

    def begin(episodes=ENDLESS, **changes):
        process = start(tmp_path / "run", episodes, environment | changes)
        eventually(lambda: has_episodes(tmp_path / "run"))
        return tmp_path / "run", process

    return begin


def operate(environment, *args):
    command = [sys.executable, "-m", "esper_ab.commands.cli", *map(str, args)]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def output_of(process):
    output, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output + error
    return output


class Terminal:
    """A pseudo-terminal that is read until it hangs up."""

    def __init__(self, *, controlling):
        self._master, self._slave = pty.openpty()
        self._controlling = controlling
        self.shown = b""
        self._reader = threading.Thread(target=self._read)
        self._hung_up, self._hang_up = os.pipe()
        self._reader.start()

    def _read(self):
        while self._hung_up not in (ready_descriptors := select.select([self._master, self._hung_up], [], [])[0]):
            assert ready_descriptors
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
        """Hang up, as sshd does when the connection is lost."""
        os.write(self._hang_up, b"!")
        self._reader.join()
        for descriptor in (self._slave, self._hung_up, self._hang_up):
            os.close(descriptor)


@pytest.mark.parametrize("controlling", [True, False], ids=["sighup", "only-eio"])
def test_a_run_continues_to_the_same_records_after_a_hang_up(tmp_path, environment, undisturbed, controlling):
    experiment_dir = tmp_path / "run"
    terminal = Terminal(controlling=controlling)
    process = start(experiment_dir, EPISODES, environment, **terminal.as_streams)
    try:
        eventually(lambda: has_episodes(experiment_dir) and b"held-out" in terminal.shown)
        process.send_signal(signal.SIGSTOP)  # even on a fast machine, it must not finish before the hang-up
    finally:
        terminal.close()
    assert not any(run.evaluation for run in load(experiment_dir).history.runs.values()), "it was over before"
    process.send_signal(signal.SIGCONT)
    assert process.wait(PATIENCE_S) == 0
    assert b"held-out" in terminal.shown
    assert disturbed.digests(experiment_dir) == undisturbed
    console = (experiment_dir / CONSOLE_NAME).read_text()
    assert "the terminal has closed" in console
    assert console.rstrip().endswith("the summary")
    assert "\x1b" not in console  # lines, no redrawing
    assert "look at 1 seed" in console
    assert "Traceback" not in console


def interrupt(viewer):
    """Send Ctrl-C until the viewer ends: Python drops an interrupt during a callback of the interpreter."""
    while viewer.poll() is None:
        viewer.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            viewer.wait(5.0)


def test_viewers_that_are_killed_or_closed_do_not_affect_the_run(start_run, environment, undisturbed):
    experiment_dir, process = start_run(EPISODES)
    process.send_signal(signal.SIGSTOP)  # even on a fast machine, it must not finish before the viewers start
    viewers = [operate(environment, "status", "-f", experiment_dir, "--json") for _ in range(3)]
    closed, staying = (operate(environment, "status", "-f", experiment_dir) for _ in range(2))
    for viewer in viewers:
        assert json.loads(viewer.stdout.readline())["state"] == "running"
        viewer.kill()
        viewer.communicate()
    for viewer in (closed, staying):
        assert viewer.stdout.readline().startswith("fake: running")
    interrupt(closed)
    assert "view closed; the experiment continues" in output_of(closed)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=PATIENCE_S)
    build_report(experiment_dir)  # viewers wait for it
    assert "fake: finished" in output_of(staying)
    assert process.returncode == 0
    assert disturbed.digests(experiment_dir) == undisturbed


def test_the_stop_command_ends_a_run_as_ctrl_c_does(start_run, environment):
    experiment_dir, process = start_run()
    answer = json.loads(output_of(operate(environment, "stop", experiment_dir, "--json")))
    assert (answer["stopped"], answer["state"]) == (True, "interrupted")
    assert "stopped by Ctrl-C after the current barrier" in answer["detail"]
    assert answer["resume"] == f"esper-ab resume {experiment_dir}"
    assert process.wait(PATIENCE_S) == 130
    process.communicate()
    assert not holder(experiment_dir)
    assert disturbed.events_of(experiment_dir)[-1].status == "interrupted"
    assert [pid for pid in worker_pids(experiment_dir) if process_started(pid) is not None] == []
    second_answer = output_of(operate(environment, "stop", experiment_dir))
    assert "not running; it is interrupted" in second_answer
    assert f"resume with: esper-ab resume {experiment_dir}" in second_answer


def test_stop_now_does_not_wait_for_the_barrier(start_run, environment):
    experiment_dir, process = start_run(**{FAULT_VARIABLE: "hang:a/0:9"})
    following = operate(environment, "logs", experiment_dir, "-f")
    assert following.stdout.readline().endswith("| about to hang\n")
    assert "stopped at once" in output_of(operate(environment, "stop", experiment_dir, "--now"))
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    output_of(following)


def test_a_killed_run_is_reported_as_stale(start_run, tmp_path, environment):
    experiment_dir, process = start_run()
    refused = operate(environment, "tidy", experiment_dir)
    assert f"in use by process {process.pid} on " in refused.communicate()[1]
    assert refused.returncode == 2
    process.kill()
    process.communicate()
    eventually(lambda: all(process_started(pid) is None for pid in worker_pids(experiment_dir)))
    assert "the process that ran it has died" in output_of(operate(environment, "status", "-f", experiment_dir))
    assert json.loads(output_of(operate(environment, "list", tmp_path, "--json")))[0]["state"] == "stale"
    answer = json.loads(output_of(operate(environment, "stop", experiment_dir, "--json")))
    assert (answer["stopped"], answer["state"]) == (False, "stale")
    output_of(operate(environment, "logs", experiment_dir))
    with suppress(FileNotFoundError):  # a killed coordinator cannot remove its sockets
        for socket_folder in Path(environment["TMPDIR"]).iterdir():
            for socket in socket_folder.iterdir():
                socket.unlink()
            socket_folder.rmdir()
