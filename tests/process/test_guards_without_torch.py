"""A worker that only supervises a command imports no torch, however it is started."""

from functools import partial
from pathlib import Path

import pytest
from support.commands.in_process import stdout_of
from support.processes.children import environment
from support.workers import trainers

from esper_ab.contracts import supervisor as supervisors
from esper_ab.contracts.own_packages import isolated_command
from esper_ab.control import experiment_run
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.launchers import Launcher, Node
from esper_ab.launchers._supervised import DESCRIPTORS, NodeSupervisor, PipedSupervisor
from esper_ab.launchers.local import LocalLauncher

# The script writes whether its guard, the worker and the worker's parent have loaded torch.
SCRIPT = """
import json, os, sys
from pathlib import Path
seed, lr, out = sys.argv[1:]
seen, process = [], os.getppid()
for _ in range(3):
    seen.append("torch" in Path(f"/proc/{process}/maps").read_text())
    process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
Path(out, "seen.json").write_text(json.dumps(seen))
Path(out, "r.json").write_text(json.dumps({"return": int(seed) % 7 + float(lr)}))
"""
ONE_MORE_THREAD = (
    "import sys, threading, time\n"
    "if 'workers.process.start_process' in sys.orig_argv:\n"
    "    threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n"
)


class Supervised(Launcher):
    """A launcher with a supervisor, like those for Slurm and Ray, on this machine."""

    name = "supervised"
    transport = "tcp"
    descriptors = 1
    own_descriptors = DESCRIPTORS
    nodes = (Node(name="n0", cores=2),)

    def __init__(self) -> None:
        super().__init__()
        self._supervisor = NodeSupervisor("n0", partial(PipedSupervisor, isolated_command(supervisors.__file__)))

    def start(self, order):
        return self._supervisor.start(order, self.entry)

    def release(self):
        self._supervisor.dismiss()
        self._supervisor.leave()


@pytest.fixture
def history(tmp_path: Path, monkeypatch) -> History:
    """Run an experiment that trains by a command; its plan can be run again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    command = trainers.command(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    stdout_of(
        "launch",
        "--output-dir",
        tmp_path / "runs",
        "--name",
        "first",
        "--quiet",
        "--launcher",
        "inline",
        "--margin",
        "0.1",
        "--higher",
        "return",
        command,
        "--seeds",
        "1",
        "--vary",
        "lr=1,2",
    )
    return load(tmp_path / "runs/first").history


def loaded_torch_with(history: History, folder: Path, launcher: Launcher) -> set[str]:
    folder.mkdir()
    experiment_run.run(history.plan, folder, launcher, ())
    workers = load(folder).history.workers
    assert [worker.torch_version for worker in workers] == [""] * len(workers)
    return {file.read_text() for file in folder.rglob("seen.json")}


@pytest.mark.parametrize("launcher", [LocalLauncher, Supervised], ids=["forked", "supervised"])
def test_neither_a_command_worker_nor_its_parents_load_torch(tmp_path, history, launcher):
    assert loaded_torch_with(history, tmp_path / "again", launcher()) == {"[false, false, false]"}


def test_a_spawned_command_worker_loads_no_torch(tmp_path, history, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(ONE_MORE_THREAD)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{environment()['PYTHONPATH']}")
    launcher = LocalLauncher()
    assert loaded_torch_with(history, tmp_path / "again", launcher) == {"[false, false, false]"}
    assert launcher.spawned_because
