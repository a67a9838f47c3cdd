"""The start process: state that forked workers inherit, and the end of the process and of its workers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.coordinators.killed_processes import alive
from support.plans.worker_orders import order
from support.processes.children import environment, python
from support.processes.waiting import eventually

from esper_ab.contracts.settings import Arithmetic
from esper_ab.launchers._start_process import StartProcess
from esper_ab.launchers.local import LocalLauncher

PATIENCE_S = 120.0
# Imports everything that the start process imports, and counts calls that query a device.
IMPORTED = """
import importlib, json, os
from esper_ab.contracts.settings import Arithmetic
from workers.devices import pinned
from workers.process import entry, start_process
os.environ.update(pinned.variables((), Arithmetic(threads=1)))
import torch
asked = []
for name in ("_lazy_init", "device_count", "is_available", "get_device_properties", "current_device"):
    setattr(torch.cuda, name, lambda *_, name=name: asked.append(name))
for module in entry.BEFORE_FORK:
    importlib.import_module(module)
print(json.dumps([asked, torch.cuda.is_initialized(), start_process.reason_to_spawn(), "torch.multiprocessing"]))
"""
REWARD = """
import os
from pathlib import Path
with (Path(__file__).parent / "imported").open("a") as file:
    file.write(f"{os.getpid()} {os.getppid()}\\n")
def reward(facts, settings):
    return facts.val_acc
"""
COORDINATOR = """
import sys, time
from esper_ab.launchers._start_process import StartProcess
from esper_ab.launchers.local import LocalLauncher
from support.plans.worker_orders import order
launcher = LocalLauncher("support.workers.idle_worker:main")
worker = launcher.start(order(worker="waits", experiment_dir=sys.argv[1]))
time.sleep(1e6)
"""


# Starts children until the descriptors are used up, then prints the errors, whether the running children are alive,
# and whether the start process ended. One more start must succeed after a child has ended.
CROWDED = """
import errno, os, resource, sys
from esper_ab.launchers._start_process import StartProcess
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
starter = StartProcess("support.workers.started_worker", has_torch=sys.argv[2] == "torch")
running, refused = [], []
while len(refused) < 3:
    try:
        child = starter.start("sleeps", "support.workers.sleeping_process:main", [])
        child.await_start()
        running.append(child)
    except OSError as error:
        refused.append(errno.errorcode[error.errno])
        child.close()
alive = [child.poll() is None for child in running]
running[0].kill()
running[0].wait()
running[0].close()
again = starter.start("sleeps", "support.workers.sleeping_process:main", [])
again.await_start()
print(len(running) > 2, set(refused), all(alive), starter.has_ended, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("limit", range(60, 67))
def test_a_failed_start_for_lack_of_descriptors_ends_no_worker(limit):
    result = python("-c", CROWDED, str(limit), "torch" if limit == 63 else "no torch")
    assert result.stdout == "True {'EMFILE'} True False\n", result.stderr


def test_importing_the_start_process_neither_queries_devices_nor_starts_threads():
    result = python("-c", IMPORTED)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [[], False, "", "torch.multiprocessing"]


def start_workers(launcher, folder, *names, **changes):
    """Start workers with these names and return the facts that each wrote."""
    workers = [launcher.start(order(worker=name, experiment_dir=str(folder), **changes)) for name in names]
    for worker in workers:
        assert worker.join(PATIENCE_S)
        assert worker.exitcode == 3
    return [json.loads((folder / f"{name}.json").read_text()) for name in names]


def test_workers_forked_from_one_process_share_no_state(tmp_path, monkeypatch):
    launcher = LocalLauncher("support.workers.started_worker:main")
    monkeypatch.setenv("STARTED_FOR", "the first")
    first_facts, second_facts = start_workers(launcher, tmp_path, "one", "two")
    assert launcher.spawned_because == ""
    assert first_facts["start_process"] == first_facts["parent"] == second_facts["start_process"] != os.getpid()
    assert (first_facts["name"], second_facts["name"]) == ("one/1", "two/1")
    assert first_facts["random"] != second_facts["random"]
    assert first_facts["main"] is None
    assert not first_facts["cuda"]
    assert first_facts["safe_path"] == os.environ.get("PYTHONSAFEPATH")
    # Two pipes of multiprocessing remain; sockets, pidfds and files of the start process are closed.
    assert set(second_facts["descriptors"]) <= {"pipe", "/dev/null", f"/proc/{second_facts['pid']}/fd"}
    for name in ("one", "two"):
        assert (tmp_path / f"{name}.txt").read_text() == "flushed"
        assert (tmp_path / f"{name}.exit").read_text() == "called"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("STARTED_FOR", "the second")
    (third_facts,) = start_workers(launcher, tmp_path, "three")
    assert (third_facts["folder"], third_facts["asked_for"]) == (str(tmp_path / "elsewhere"), "the second")
    assert third_facts["start_process"] == first_facts["start_process"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_worker_uses_the_planned_number_of_threads(tmp_path, threads):
    launcher = LocalLauncher("support.workers.started_worker:main")
    (facts,) = start_workers(launcher, tmp_path, "one", arithmetic=Arithmetic(threads=threads))
    assert facts["threads"] == threads
    assert facts["openblas"] in ([threads], [])  # numpy's; [] if it has other arithmetic


def test_workers_are_spawned_if_the_start_process_has_another_thread(tmp_path, monkeypatch):
    """A monitoring package may load a thread into every Python process. No worker inherits it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, threading, time\n"
        "if 'workers.process.start_process' in sys.orig_argv:\n"
        "    threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    launcher = LocalLauncher("support.workers.started_worker:main")
    (facts,) = start_workers(launcher, tmp_path, "one")
    assert launcher.spawned_because == "importing its modules has left 1 more thread running"
    assert facts["main"] is None
    assert facts["safe_path"] == os.environ.get("PYTHONSAFEPATH")
    assert (tmp_path / "one.txt").read_text() == "flushed"


def test_the_plan_says_why_workers_are_spawned(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, threading, time\n"
        "if 'workers.process.start_process' in sys.orig_argv:\n"
        "    threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n"
    )
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    result = python(
        "-m",
        "esper_ab.launch",
        "--groups",
        "wait,random",
        "--task",
        "synthetic",
        "--dry-run",
        "--verbose",
        folder=tmp_path,
        PYTHONPATH=path,
    )
    assert result.returncode == 0, result.stderr
    plan = " ".join(result.stdout.split())
    assert "(spawned, not forked), because importing its modules has left 1 more thread running." in plan


def test_only_the_preflight_and_workers_import_user_code(tmp_path):
    (tmp_path / "mine.py").write_text(REWARD)
    result = python(
        "-m",
        "esper_ab.launch",
        "--groups",
        "a=mine.py:reward,b=mine.py:reward",
        "--task",
        "synthetic",
        "--seeds",
        "1",
        "--episodes",
        "1",
        "--steps",
        "2",
        "--n-envs",
        "2",
        "--eval-episodes",
        "2",
        "--devices",
        "cpu:0",
        "--yes",
        folder=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    lines = [line.split() for path in tmp_path.rglob("imported") for line in path.read_text().splitlines()]
    assert len(lines) >= 2
    (start_process,) = {parent for _, parent in lines}
    assert start_process not in {process for process, _ in lines}


@pytest.mark.parametrize("killed_process", ["coordinator", "start process"])
def test_a_killed_coordinator_or_start_process_leaves_no_process(tmp_path, killed_process):
    line = [sys.executable, "-c", COORDINATOR, str(tmp_path)]
    with subprocess.Popen(line, env=environment(), start_new_session=True) as coordinator:
        eventually((tmp_path / "begun").exists, PATIENCE_S)
        facts = json.loads((tmp_path / "waits.json").read_text())
        os.kill(coordinator.pid if killed_process == "coordinator" else facts["start_process"], signal.SIGKILL)
        eventually(lambda: not alive(facts["pid"]), PATIENCE_S)
        eventually(lambda: not alive(facts["start_process"]), PATIENCE_S)
        coordinator.kill()
    assert coordinator.returncode == -signal.SIGKILL


def test_new_workers_can_start_after_the_start_process_was_killed(tmp_path):
    launcher = LocalLauncher("support.workers.idle_worker:main")
    worker = launcher.start(order(worker="waits", experiment_dir=str(tmp_path)))
    eventually((tmp_path / "begun").exists, PATIENCE_S)
    killed_process = psutil.Process(worker.pid).ppid()
    os.kill(killed_process, signal.SIGKILL)
    assert worker.join(PATIENCE_S)
    assert worker.exitcode == -signal.SIGKILL
    assert not alive(worker.pid)
    (facts,) = start_workers(launcher, tmp_path, "one")
    assert facts["start_process"] != killed_process


def test_a_start_process_that_is_still_ending_is_replaced(tmp_path, monkeypatch):
    """Its socket is closed, but the kernel has not yet reported its end."""
    launcher = LocalLauncher("support.workers.idle_worker:main")
    (first_facts,) = start_workers(launcher, tmp_path, "one")
    os.kill(first_facts["start_process"], signal.SIGKILL)
    eventually(lambda: not alive(first_facts["start_process"]), PATIENCE_S)
    with monkeypatch.context() as patch:
        patch.setattr(StartProcess, "has_ended", False)
        (second_facts,) = start_workers(launcher, tmp_path, "two")
    assert second_facts["start_process"] != first_facts["start_process"]


def test_the_exit_code_of_a_killed_worker_is_the_negative_signal(tmp_path: Path) -> None:
    launcher = LocalLauncher("support.workers.idle_worker:main")
    worker = launcher.start(order(worker="waits", experiment_dir=str(tmp_path)))
    eventually((tmp_path / "begun").exists, PATIENCE_S)
    os.kill(worker.pid, signal.SIGABRT)
    assert worker.join(PATIENCE_S)
    assert worker.exitcode == -signal.SIGABRT
