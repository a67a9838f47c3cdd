"""What is started before a worker is at work ends with its coordinator; workers outlive one that stands still."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from support import conducted, fake_plans
from support.being_killed import alive
from support.children import environment
from support.patience import eventually
from support.standstill import coordinator, stood_still

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
# In place of a coordinator: the preflight, and a worker that has come as far as its entry point.
PREFLIGHT = """
import sys
from esper_ab.contracts.machine import Questions
from esper_ab.control.preflight import examine
examine(Questions(task="synthetic", data_dir="", user_rewards=(sys.argv[1] + "/hangs.py:reward",)))
"""
WORKER = """
import sys, time
from esper_ab.launchers.local import LocalLauncher
from support.orders import order
launcher = LocalLauncher("support.hanging:main")
worker = launcher.start(order(experiment_dir=sys.argv[1], log_file="logs/w00.log"))
time.sleep(1e6)
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("program", [PREFLIGHT, WORKER], ids=["preflight", "worker"])
def test_nothing_outlives_a_coordinator_that_ends_while_it_starts(tmp_path, program, sent):
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    (tmp_path / "hangs.py").write_text(REWARD.format(pipe=str(pipe)))
    line = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(line, env=environment(), start_new_session=True) as it:
        with pipe.open() as told:
            child = int(told.readline())
        assert alive(child)
        it.send_signal(sent)
        it.wait(PATIENCE_S)
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


# In place of the first import of a library: the program says that it has come there, and waits.
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


def launched_and_cut(folder, module, words, **changes):
    """A launch whose terminal closes between `begun` and `gate`; its exit status."""
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


def launched_and_cut_in_the_rehearsal(folder, score):
    """A launch whose terminal closes while a program is rehearsed for the first time; its exit status."""
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
    return launched_and_cut(folder, "esper_ab.commands.cli", words)


@pytest.mark.parametrize(("module", "words"), [("esper_ab", ("launch",)), ("esper_ab.launch", ())])
def test_a_launch_whose_terminal_closes_while_its_libraries_are_imported_goes_on(tmp_path, module, words):
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
    assert launched_and_cut(tmp_path, module, words, PYTHONPATH=path) == 0
    console = (tmp_path / "experiments/it/console.log").read_text()
    assert "the terminal has closed; its output continues here" in console
    assert "report: experiments/it/report.html" in console


def test_a_launch_whose_terminal_closes_in_the_rehearsal_goes_on_and_writes_to_its_directory(tmp_path):
    assert launched_and_cut_in_the_rehearsal(tmp_path, "int(seed) % 1000 + float(x)") == 0
    console = (tmp_path / "experiments/it/console.log").read_text()
    assert "the terminal has closed; its output continues here" in console
    assert "report: experiments/it/report.html" in console


def test_a_launch_that_is_refused_after_its_terminal_closed_leaves_a_word_beside_the_experiments(tmp_path):
    assert launched_and_cut_in_the_rehearsal(tmp_path, "1") == UsageError.exit_code
    console = (tmp_path / "experiments/console.log").read_text()
    assert "error: " in console
    assert "3 seeds gave the same result" in console


# --- on clusters: tests/cluster ---

PLAN = fake_plans.plan(3, ("a", "b", "c"), seeds=60, episodes=3)


def launcher(transport):
    return LocalLauncher("support.fake_worker:main", transport)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_workers_outlive_a_coordinator_that_stands_still_for_45_s_and_go_on(tmp_path, transport):
    run = tmp_path / "run"
    events = stood_still(coordinator(run, "process.test_outliving", "PLAN", transport), run)
    assert result_hash(fold(events)) == result_hash(fold(conducted.run(tmp_path / "alone", PLAN)))
