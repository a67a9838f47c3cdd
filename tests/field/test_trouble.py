"""Projects in trouble: a launch that is killed while its programs run, and a port that another program holds."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.commands.in_process import esper_ab
from support.processes.children import environment
from support.processes.waiting import eventually

PROJECTS = Path(__file__).parent / "projects"
RATES = ("--vary", "lr=0.1,0.9", "--higher", "score", "--margin", "1", "--devices", "cpu:0", "--name", "rates")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where projects are copied to; `python` is the one that runs the tests."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def programs_below(folder):
    """Return the processes that write into a folder: they are given it as an argument."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(str(folder) in word for word in process.cmdline()):
                found.append(process)
    return found


def test_a_killed_launch_leaves_no_forked_process_and_is_resumed(folder):
    project = shutil.copytree(PROJECTS / "forks", folder / "forks")
    launch = ("launch", "python train.py {seed} {lr} {out}", *RATES, "--quiet")
    killed = subprocess.Popen(
        [sys.executable, "-m", "esper_ab", *launch], cwd=project, env=environment(), stdout=subprocess.DEVNULL
    )
    events = project / "experiments/rates/events.jsonl"
    eventually(lambda: events.exists() and '"kind":"evaluation"' in events.read_text(), 120)
    eventually(lambda: programs_below(project), 60)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    eventually(lambda: not programs_below(project), 60)
    resumed = esper_ab("resume", "experiments/rates", "--quiet", folder=project)
    assert "lr=0.9 is better than lr=0.1" in resumed.stdout


def test_a_command_whose_port_is_taken_is_told_about_ports(folder):
    project = shutil.copytree(PROJECTS / "one port", folder / "one port")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = f"python train.py --seed {{seed}} --lr {{lr}} --port {port}"
        refused = esper_ab("launch", command, *RATES, folder=project)
    assert refused.returncode == 2
    assert "give it {port}, which is a free one for each run" in refused.stderr
