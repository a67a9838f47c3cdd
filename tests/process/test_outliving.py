"""Processes of a starting launch end with their coordinator; workers outlive a coordinator that is paused."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from support.coordinators import disturbed
from support.coordinators.killed_processes import alive
from support.coordinators.suspended_coordinator import coordinator, suspend_and_finish
from support.plans import fake_plans
from support.processes.children import environment
from support.processes.waiting import eventually

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.fold import fold
from esper_ab.launchers.local import LocalLauncher

PATIENCE_S = 60.0
REWARD = """
import os, sys, time
with open({pipe!r}, "w") as told:
    told.write(f"{{os.getpid()}}\\n")
time.sleep(1e6)
"""
# Instead of a coordinator: the preflight, and a launcher with a worker that hangs in its entry point.
PREFLIGHT = """
import sys
from esper_ab.contracts.machine import Questions
from esper_ab.control.preflight import examine
examine(Questions(task="synthetic", data_dir="", user_rewards=(sys.argv[1] + "/hangs.py:reward",)))
"""
WORKER = """
import sys, time
from esper_ab.launchers.local import LocalLauncher
from support.plans.worker_orders import order
launcher = LocalLauncher("support.workers.hanging_worker:main")
worker = launcher.start(order(experiment_dir=sys.argv[1], log_file="logs/w00.log"))
time.sleep(1e6)
"""


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("program", [PREFLIGHT, WORKER], ids=["preflight", "worker"])
def test_no_child_outlives_a_coordinator_that_is_killed_during_start_up(tmp_path, program, signal_number):
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    (tmp_path / "hangs.py").write_text(REWARD.format(pipe=str(pipe)))
    line = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(line, env=environment(), start_new_session=True) as parent:
        with pipe.open() as reader:
            child = int(reader.readline())
        assert alive(child)
        parent.send_signal(signal_number)
        parent.wait(PATIENCE_S)
    try:
        eventually(lambda: not alive(child), PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


TRAINER = """
import json, os, sys
seed, x, out = sys.argv[1:]
if not os.path.exists("seen"):
    open("seen", "w").close()
    open("begun", "w").close()
    open("gate").close()
score = {score}
json.dump({{"score": score}}, open(out + "/r.json", "w"))
"""


# Pauses the first import of a library: opens `begun`, then waits for `gate`.
PAUSED_IMPORT = """
import sys
class Pause:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            sys.meta_path.remove(self)
            open("begun", "w").close()
            open("gate").close()
sys.meta_path.insert(0, Pause())
"""


def launch_and_hang_up(folder, module, words, **changes):
    """Launch, close the terminal between `begun` and `gate`, and return the exit status."""
    for name in ("begun", "gate"):
        os.mkfifo(folder / name)
    master, slave = os.openpty()
    begin = f"import os, signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.login_tty({slave})"
    program = f"{begin}; os.execv({sys.executable!r}, {[sys.executable, '-m', module, *words]!r})"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program],
        cwd=folder,
        env=environment() | changes,
        pass_fds=[slave],
        start_new_session=True,
    ) as launch:
        os.close(slave)
        (folder / "begun").open().close()
        os.close(master)  # the kernel sends SIGHUP to the session's leader
        (folder / "gate").open("w").close()
        return launch.wait(PATIENCE_S)


def launch_and_hang_up_in_the_rehearsal(folder, score):
    """Launch, close the terminal during the first rehearsal of a program, and return the exit status."""
    (folder / "train.py").write_text(TRAINER.format(score=score))
    words = (
        "launch",
        f"{sys.executable} train.py {{seed}} {{x}} {{out}}",
        "--vary",
        "x=1,2",
        "--seeds",
        "1",
        "--higher",
        "score",
        "--margin",
        "1",
        "--name",
        "it",
    )
    return launch_and_hang_up(folder, "esper_ab.commands.cli", words)


@pytest.mark.parametrize(
    ("module", "words"), [("esper_ab", ("launch",)), pytest.param("esper_ab.launch", (), marks=pytest.mark.slow)]
)
def test_a_launch_continues_if_its_terminal_closes_during_imports(tmp_path, module, words):
    (tmp_path / "sitecustomize.py").write_text(PAUSED_IMPORT)
    words = (
        *words,
        "--groups",
        "wait,random",
        "--task",
        "synthetic",
        "--seeds",
        "1",
        "--episodes",
        "1",
        "--steps",
        "4",
        "--n-envs",
        "1",
        "--name",
        "it",
    )
    path = f"{tmp_path}{os.pathsep}{environment()['PYTHONPATH']}"
    assert launch_and_hang_up(tmp_path, module, words, PYTHONPATH=path) == 0
    console = (tmp_path / "experiments/it/console.log").read_text()
    assert "the terminal has closed; its output continues here" in console
    assert "report: experiments/it/report.html" in console


def test_a_launch_continues_if_its_terminal_closes_during_the_rehearsal(tmp_path):
    assert launch_and_hang_up_in_the_rehearsal(tmp_path, "int(seed) % 1000 + float(x)") == 0
    console = (tmp_path / "experiments/it/console.log").read_text()
    assert "the terminal has closed; its output continues here" in console
    assert "report: experiments/it/report.html" in console


def test_a_refusal_is_logged_if_the_terminal_has_closed(tmp_path):
    assert launch_and_hang_up_in_the_rehearsal(tmp_path, "2.5") == UsageError.exit_code
    console = (tmp_path / "experiments/console.log").read_text()
    assert "error: " in console
    assert "3 seeds gave the same result" in console


# --- on clusters: tests/cluster ---

PLAN = fake_plans.plan(3, ("a", "b", "c"), seeds=60, episodes=3)


def launcher(transport):
    return LocalLauncher("support.workers.fake_worker:main", transport)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_workers_survive_a_coordinator_that_is_paused_for_45_s(tmp_path, transport):
    run = tmp_path / "run"
    events = suspend_and_finish(coordinator(run, "process.test_outliving", "PLAN", transport), run)
    assert result_hash(fold(events)) == result_hash(fold(disturbed.run(tmp_path / "alone", PLAN)))
