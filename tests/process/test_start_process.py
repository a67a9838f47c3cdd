"""The start process: what its children have from it, what it keeps to itself, and how they end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.being_killed import alive
from support.children import environment, python
from support.orders import order
from support.patience import eventually

from esper_ab.contracts.settings import Arithmetic
from esper_ab.launchers._start_process import StartProcess
from esper_ab.launchers.local import LocalLauncher

PATIENCE_S = 120.0
# Everything that the start process imports, with every question to a device counted.
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
from support.orders import order
launcher = LocalLauncher("support.started:main")
worker = launcher.start(order(worker="waits", experiment_dir=sys.argv[1]))
time.sleep(1e6)
"""


# Prints, for each start that was refused, its error; then whether the children from before run, and whether another
# start succeeds once one of them has ended.
CROWDED = """
import errno, os, resource, sys
from esper_ab.launchers._start_process import StartProcess
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
starter = StartProcess("support.started")
running, refused = [], []
while len(refused) < 3:
    try:
        child = starter.start("sleeps", "support.sleeping:main", [])
        child.await_start()
        running.append(child)
    except OSError as error:
        refused.append(errno.errorcode[error.errno])
        child.close()
alive = [child.poll() is None for child in running]
running[0].kill()
running[0].wait()
running[0].close()
again = starter.start("sleeps", "support.sleeping:main", [])
again.await_start()
print(len(running) > 2, set(refused), all(alive), starter.has_ended, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("limit", range(60, 67))
def test_where_no_descriptor_is_free_a_start_is_refused_and_nothing_else_ends(limit):
    done = python("-c", CROWDED, str(limit))
    assert done.stdout == "True {'EMFILE'} True False\n", done.stderr


def test_what_the_start_process_imports_asks_for_no_device_and_leaves_one_thread():
    done = python("-c", IMPORTED)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[], False, "", "torch.multiprocessing"]


def started(launcher, folder, *names, **changes):
    """What workers with these names have written down, in their order."""
    workers = [launcher.start(order(worker=name, experiment_dir=str(folder), **changes)) for name in names]
    for worker in workers:
        assert worker.join(PATIENCE_S)
        assert worker.exitcode == 3
    return [json.loads((folder / f"{name}.json").read_text()) for name in names]


def test_workers_are_forked_from_one_process_and_share_nothing_else(tmp_path, monkeypatch):
    launcher = LocalLauncher("support.started:main")
    monkeypatch.setenv("STARTED_FOR", "the first")
    one, two = started(launcher, tmp_path, "one", "two")
    assert launcher.spawned_because == ""
    assert one["start_process"] == one["parent"] == two["start_process"] != os.getpid()
    assert (one["name"], two["name"]) == ("one/1", "two/1")
    assert one["random"] != two["random"]
    assert one["main"] is None
    assert not one["cuda"]
    assert one["safe_path"] == os.environ.get("PYTHONSAFEPATH")
    # multiprocessing leaves two pipes; of the start process's sockets, pidfds and files there is nothing.
    assert set(two["descriptors"]) <= {"pipe", "/dev/null", f"/proc/{two['pid']}/fd"}
    for name in ("one", "two"):
        assert (tmp_path / f"{name}.txt").read_text() == "flushed"
        assert (tmp_path / f"{name}.exit").read_text() == "called"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("STARTED_FOR", "the second")
    (three,) = started(launcher, tmp_path, "three")
    assert (three["folder"], three["asked_for"]) == (str(tmp_path / "elsewhere"), "the second")
    assert three["start_process"] == one["start_process"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_worker_has_as_many_threads_as_planned_whatever_was_loaded_before(tmp_path, threads):
    launcher = LocalLauncher("support.started:main")
    (facts,) = started(launcher, tmp_path, "one", arithmetic=Arithmetic(threads=threads))
    assert facts["threads"] == threads
    assert facts["openblas"] in ([threads], [])  # numpy's; [] if it has other arithmetic


def test_with_another_thread_in_the_start_process_workers_are_spawned(tmp_path, monkeypatch):
    """As by a package that watches every Python of a machine. The thread does not get into the workers either way."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, threading, time\n"
        "if 'workers.process.start_process' in sys.orig_argv:\n"
        "    threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    launcher = LocalLauncher("support.started:main")
    (facts,) = started(launcher, tmp_path, "one")
    assert launcher.spawned_because == "importing its modules has left 1 more thread running"
    assert facts["main"] is None
    assert facts["safe_path"] == os.environ.get("PYTHONSAFEPATH")
    assert (tmp_path / "one.txt").read_text() == "flushed"


def test_a_plan_says_that_workers_are_spawned(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, threading, time\n"
        "if 'workers.process.start_process' in sys.orig_argv:\n"
        "    threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n"
    )
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    done = python(
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
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "(spawned, not forked), because importing its modules has left 1 more thread running." in said


def test_users_code_is_imported_in_the_preflight_and_in_workers_only(tmp_path):
    (tmp_path / "mine.py").write_text(REWARD)
    done = python(
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
    assert done.returncode == 0, done.stderr
    lines = [line.split() for path in tmp_path.rglob("imported") for line in path.read_text().splitlines()]
    assert len(lines) >= 2
    (start_process,) = {parent for _, parent in lines}
    assert start_process not in {process for process, _ in lines}


@pytest.mark.parametrize("killed", ["coordinator", "start process"])
def test_nothing_outlives_what_is_killed(tmp_path, killed):
    line = [sys.executable, "-c", COORDINATOR, str(tmp_path)]
    with subprocess.Popen(line, env=environment(), start_new_session=True) as coordinator:
        eventually((tmp_path / "begun").exists, PATIENCE_S)
        facts = json.loads((tmp_path / "waits.json").read_text())
        os.kill(coordinator.pid if killed == "coordinator" else facts["start_process"], signal.SIGKILL)
        eventually(lambda: not alive(facts["pid"]), PATIENCE_S)
        eventually(lambda: not alive(facts["start_process"]), PATIENCE_S)
        coordinator.kill()
    assert coordinator.returncode == -signal.SIGKILL


def test_after_the_start_process_was_killed_its_workers_have_ended_and_others_start(tmp_path):
    launcher = LocalLauncher("support.started:main")
    worker = launcher.start(order(worker="waits", experiment_dir=str(tmp_path)))
    eventually((tmp_path / "begun").exists, PATIENCE_S)
    before = psutil.Process(worker.pid).ppid()
    os.kill(before, signal.SIGKILL)
    assert worker.join(PATIENCE_S)
    assert worker.exitcode == -signal.SIGKILL
    assert not alive(worker.pid)
    (facts,) = started(launcher, tmp_path, "one")
    assert facts["start_process"] != before


def test_a_start_process_that_is_only_now_ending_is_replaced(tmp_path, monkeypatch):
    """It has closed its socket, and the kernel has not yet told of its end."""
    launcher = LocalLauncher("support.started:main")
    (before,) = started(launcher, tmp_path, "one")
    os.kill(before["start_process"], signal.SIGKILL)
    eventually(lambda: not alive(before["start_process"]), PATIENCE_S)
    with monkeypatch.context() as patch:
        patch.setattr(StartProcess, "has_ended", False)
        (after,) = started(launcher, tmp_path, "two")
    assert after["start_process"] != before["start_process"]


def test_a_signal_that_ends_a_worker_is_its_exit_code(tmp_path: Path) -> None:
    launcher = LocalLauncher("support.started:main")
    worker = launcher.start(order(worker="waits", experiment_dir=str(tmp_path)))
    eventually((tmp_path / "begun").exists, PATIENCE_S)
    os.kill(worker.pid, signal.SIGABRT)
    assert worker.join(PATIENCE_S)
    assert worker.exitcode == -signal.SIGABRT
