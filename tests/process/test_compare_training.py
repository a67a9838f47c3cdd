"""`compare_training` with a script of its own: what a Ctrl-C leaves, and what a later change of the script does."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.commands.in_process import esper_ab
from support.processes.children import environment
from support.processes.waiting import eventually

from esper_ab import load_experiment

# Each run writes the ids of its process and of a child. Those after the rehearsal (4) and the first seed (2) wait.
SCRIPT = """
import os, random, subprocess, time
from pathlib import Path
from esper_ab import compare_training

def train(seed, lr, out):
    sleeper = subprocess.Popen(["sleep", "600"])
    Path("pids").mkdir(exist_ok=True)
    Path("pids", str(os.getpid())).write_text(str(sleeper.pid))
    while len(os.listdir("pids")) > 6 and not Path("go").exists():
        time.sleep(0.05)
    return FACTOR * lr * random.Random(seed).random()

FACTOR = 10
answer = compare_training(
    train, {"a": {"lr": 0.1}, "b": {"lr": 1.0}}, margin=0.5, seeds=3, name="x", devices=["cpu:0"], alpha=0.2
)
raise AssertionError("the script goes on")
"""


def processes(folder: Path) -> list[int]:
    """Return the ids that runs have written, of processes that are still there."""
    pids = [(int(file.name), int(file.read_text() or 0)) for file in folder.glob("pids/*")]
    return [pid for pair in pids for pid in pair if pid and psutil.pid_exists(pid)]


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """Start the script, interrupt it when runs of its second seed wait, and return its folder."""
    (tmp_path / "script.py").write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    ) as script:
        eventually(lambda: len(list(tmp_path.glob("pids/*"))) > 6)
        script.send_signal(signal.SIGINT)
        (tmp_path / "go").touch()
        _, complaint = script.communicate(timeout=600)
    resume = "to go on: esper-ab resume experiments/x"
    assert complaint.splitlines() == [
        f"stopped by Ctrl-C after the current barrier; all records so far are kept; {resume}"
    ]
    assert script.returncode == -signal.SIGINT, "a shell calls it 130"
    return tmp_path


def test_ctrl_c_leaves_no_process(interrupted: Path) -> None:
    assert processes(interrupted) == []


def test_a_resumed_experiment_calls_the_unchanged_copy_of_the_function(interrupted: Path) -> None:
    (interrupted / "script.py").write_text(SCRIPT.replace("FACTOR = 10", "FACTOR = 1000"))
    resumed = esper_ab("resume", interrupted / "experiments" / "x", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    rows = load_experiment(interrupted / "experiments" / "x").query("SELECT outcome FROM evaluations").fetchall()
    assert len(rows) == 6
    assert max(outcome for (outcome,) in rows) <= 10
