"""The contract of every file in esper_ab/launchers, with real workers that do not use torch."""

import gc
import os
import re
import resource
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from support.coordinators import disturbed
from support.plans import fake_plans, worker_orders
from support.processes.children import python

from esper_ab.campaign.launcher import LAUNCHERS, make_launcher
from esper_ab.contracts import catalog, own_packages
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.worker_order import Lane, WorkerOrder
from esper_ab.journal.events import WorkerStarted
from esper_ab.launchers import Launcher, LauncherFactory, Worker
from esper_ab.settings.launcher import AskedLauncher

NAMES = catalog.names(LAUNCHERS)
CPU = Lane(name="cpu:0", devices=("cpu:0",), uuids=("",))
GPU = Lane(name="cuda:1", devices=("cuda:1",), uuids=("GPU-b",))
PATIENCE_S = 60.0


def factory(name: str) -> LauncherFactory:
    """Return the launcher's factory, or skip the test where it cannot start workers."""
    needed_variable = {"slurm": "SLURM_JOB_ID", "ray": "RAY_ADDRESS"}.get(name, "")
    if needed_variable and needed_variable not in os.environ:
        pytest.skip(f"needs {needed_variable}; tests/cluster calls these tests with it, where {name} is installed")
    launcher_factory: LauncherFactory = catalog.entry(LAUNCHERS, name, "LAUNCHER")
    return launcher_factory


def entry_of(name: str) -> str:
    return str(factory(name).entry)


@contextmanager
def open_launcher(name: str, module: str = "support.workers.launched_worker") -> Iterator[Launcher]:
    """Yield a launcher of workers of `module`, whose entry point has the name of the real one."""
    launcher = factory(name)(f"{module}:{entry_of(name).partition(':')[2]}")
    launcher.reserve((CPU,))
    try:
        yield launcher
    finally:
        launcher.release()


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def launcher(name: str) -> Iterator[Launcher]:
    with open_launcher(name) as open_instance:
        yield open_instance


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for fifo in ("begun", "gate"):
        os.mkfifo(tmp_path / fifo)
    return tmp_path


def order(folder: Path, task: str, incarnation: int = 1) -> WorkerOrder:
    return worker_orders.order(
        worker=task, incarnation=incarnation, experiment_dir=str(folder), log_file=f"logs/{task}.log"
    )


def has_ended(worker: Worker) -> bool:
    """True if the worker's end is signalled within PATIENCE_S."""
    return bool(select.select([worker.sentinel], [], [], PATIENCE_S)[0])


@contextmanager
def waiting_workers(launcher: Launcher, folder: Path, count: int = 1) -> Iterator[list[Worker]]:
    """Start workers that wait at the gate; open it at the end for those still alive."""
    start_signals = os.open(folder / "begun", os.O_RDWR)  # with a writer of our own, it never reports end of file
    workers = [launcher.start(order(folder, "waits", number)) for number in range(count)]
    try:
        for _ in workers:
            assert select.select([start_signals], [], [], PATIENCE_S)[0]
            assert os.read(start_signals, 1) == b"!"
        yield workers
    finally:
        os.close(start_signals)
        gate = os.open(folder / "gate", os.O_RDWR)  # does not block, and wakes every reader
        assert all(worker.join(PATIENCE_S) for worker in workers)
        os.close(gate)


def count_descriptors() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_launcher_file_provides_a_launcher_with_an_existing_entry_point(name: str, launcher: Launcher) -> None:
    for transport in ("tcp",) if launcher.nodes else ("ipc", "tcp"):
        selected_launcher = make_launcher(AskedLauncher(launcher=name, transport=transport))
        assert type(selected_launcher) is type(launcher)
        assert selected_launcher.transport == transport
    assert type(make_launcher(AskedLauncher(launcher=name))) is type(launcher)
    assert isinstance(launcher.child_processes, bool)
    assert launcher.descriptors > 0
    module, _, function = entry_of(name).partition(":")
    entry = own_packages.folder(module.rpartition(".")[0]) / "entry.py"
    assert re.search(rf"^def {function}\(order", entry.read_text(), re.M)


def test_a_started_worker_receives_its_order(launcher: Launcher, folder: Path) -> None:
    worker_order = order(folder, "ends")
    worker = launcher.start(worker_order)
    assert worker.name == worker_order.identity
    assert has_ended(worker)
    assert has_ended(worker), "the sentinel stays readable"
    assert worker.join(PATIENCE_S)
    assert worker.pid > 0
    assert worker.exitcode == 0
    assert worker.ended_how == ""
    assert msgspec.json.decode((folder / "order.json").read_bytes(), type=WorkerOrder) == worker_order


def test_a_worker_that_raises_has_a_non_zero_exit_code(launcher: Launcher, folder: Path) -> None:
    worker = launcher.start(order(folder, "fails"))
    assert has_ended(worker)
    assert worker.join(PATIENCE_S)
    assert worker.exitcode not in (0, None)
    assert "as it was told to" in (folder / "logs" / "fails.log").read_text()


def test_a_running_worker_can_dump_its_stacks(launcher: Launcher, folder: Path) -> None:
    with waiting_workers(launcher, folder) as (worker,):
        assert worker.exitcode is None
        assert not worker.join(0.0)
        # Workers of one node share a sentinel, which also signals a worker's key.
        assert launcher.nodes or not select.select([worker.sentinel], [], [], 0.0)[0]
        worker.dump_stacks()
        log = folder / "logs" / "waits.log"
        deadline = time.monotonic() + PATIENCE_S
        while "launched_worker.py" not in log.read_text() and time.monotonic() < deadline:
            select.select([worker.sentinel], [], [], 0.05)
        assert "launched_worker.py" in log.read_text()
    assert worker.exitcode == 0
    worker.kill()  # no effect after the end
    worker.dump_stacks()
    assert worker.exitcode == 0


def test_killing_a_worker_does_not_affect_other_workers(name: str, launcher: Launcher, folder: Path) -> None:
    with waiting_workers(launcher, folder, 2) as (killed_worker, survivor):
        killed_worker.kill()
        if name != "inline":
            assert killed_worker.pid != os.getpid()
            assert has_ended(killed_worker)
            assert killed_worker.join(PATIENCE_S)
            assert (killed_worker.exitcode or 0) < 0
        else:
            assert killed_worker.exitcode is None
        assert survivor.exitcode is None
    assert survivor.exitcode == 0


def test_the_end_of_a_worker_is_signalled_even_if_its_child_still_runs(launcher: Launcher, folder: Path) -> None:
    """The child has inherited the open files of its parent."""
    if not launcher.child_processes:
        pytest.skip("a thread has no process to fork; on a cluster nobody but the engine watches the process")
    worker = launcher.start(order(folder, "forks"))
    try:
        assert has_ended(worker)
        assert worker.join(0.0)
        assert worker.exitcode == 7
    finally:
        with (folder / "gate").open("w"):  # waits for the child and releases it
            pass


def test_workers_use_at_most_the_declared_number_of_descriptors(launcher: Launcher, folder: Path) -> None:
    with waiting_workers(launcher, folder):
        pass
    open_before = count_descriptors()
    with waiting_workers(launcher, folder, 3) as workers:
        assert count_descriptors() - open_before - 1 <= len(workers) * launcher.descriptors  # one is the test's own
    del workers
    assert count_descriptors() == open_before


def test_a_start_that_failed_for_lack_of_descriptors_can_be_retried(
    name: str, launcher: Launcher, folder: Path
) -> None:
    with waiting_workers(launcher, folder):
        pass
    with open_launcher(name) as fresh_launcher:
        starting_launcher = fresh_launcher if launcher.nodes else launcher  # on nodes, only the first worker takes any
        open_before = count_descriptors()
        (soft_limit, hard_limit) = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard_limit))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                starting_launcher.start(order(folder, "ends"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard_limit))
        assert count_descriptors() == open_before
        worker = starting_launcher.start(order(folder, "ends"))
        assert has_ended(worker)
        assert worker.join(PATIENCE_S)


def test_a_launcher_accepts_a_gpu_lane_or_refuses_it_in_one_line(name: str, launcher: Launcher) -> None:
    launcher.check_lanes((CPU,))
    try:
        launcher.check_lanes((CPU, GPU))
    except UsageError as error:
        assert re.fullmatch(rf"launcher {name} on cuda:1: .+", str(error))  # noqa: PT017  serving them is right, too
    else:
        assert name != "inline", "threads share one view of the GPUs"


def test_an_experiment_has_the_same_records_with_every_launcher(name: str, tmp_path: Path) -> None:
    with open_launcher(name, "support.workers.fake_worker") as launcher:
        events = disturbed.run(tmp_path / "run", fake_plans.plan(), launcher=launcher)
    assert set(disturbed.states(events).values()) == {"finished"}
    assert not disturbed.incidents(events)
    threads = disturbed.run(tmp_path / "threads", fake_plans.plan())
    assert {key: event.record for key, event in disturbed.records(events).items()} == {
        key: event.record for key, event in disturbed.records(threads).items()
    }
    (is_own_process,) = {event.pid == os.getpid() for event in disturbed.events_of_kind(WorkerStarted, events)}
    assert is_own_process is (name == "inline")


def test_loading_a_launcher_imports_neither_torch_nor_other_launchers(name: str) -> None:
    factory(name)
    code = (
        "from esper_ab.campaign.launcher import make_launcher\nfrom esper_ab.settings.launcher import AskedLauncher\n"
        f"make_launcher(AskedLauncher(launcher={name!r}))"
    )
    loaded_modules = set(python("-c", f"{code}\nimport sys\nprint(*sys.modules)").stdout.split())
    assert f"{LAUNCHERS}.{name}" in loaded_modules
    assert not loaded_modules & {f"{LAUNCHERS}.{other_name}" for other_name in NAMES if other_name != name}
    assert "torch" not in loaded_modules
