"""Experiments on a real Slurm: records as on one machine, and recovery from killed processes."""

import os
import signal

import pytest
from support.clusters.launcher_contract import check_contract
from support.coordinators import disturbed
from support.coordinators.killed_processes import alive
from support.coordinators.suspended_coordinator import coordinator, suspend_and_finish
from support.plans import fake_plans

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts.errors import Interrupted
from esper_ab.contracts.machine import Device
from esper_ab.journal.events import ExperimentEnded, WorkerStarted
from esper_ab.journal.fold import fold
from esper_ab.launchers.slurm import SlurmLauncher, expand_cores

PLAN = fake_plans.plan(6, ("a", "b", "c"), seeds=4, episodes=3)
LONGER = fake_plans.plan(6, ("a", "b", "c"), seeds=60, episodes=3)
PATIENCE_S = 60.0


def devices(nodes=("n1", "n2", "n3")):
    """Return two cores of each node."""
    return [
        Device(name=f"cpu:{2 * place + core}", title="", uuid="", memory_bytes=1 << 30, node=node)
        for place, node in enumerate(nodes)
        for core in range(2)
    ]


def make_launcher(nodes=("n1", "n2", "n3")):
    launcher = SlurmLauncher("support.workers.fake_worker:main")
    launcher.use(devices(nodes))
    return launcher


@pytest.fixture(scope="module")
def on_one_machine(tmp_path_factory):
    return disturbed.run(tmp_path_factory.mktemp("run"), PLAN)


def test_the_slurm_launcher_passes_the_launcher_contract(allocation, tmp_path):
    check_contract("slurm", tmp_path)


def test_records_on_slurm_equal_those_of_one_machine(allocation, tmp_path, on_one_machine):
    events = disturbed.run(tmp_path / "run", PLAN, launcher=make_launcher())
    assert events[-1] == ExperimentEnded(status="finished", detail="")
    assert not disturbed.incidents(events)
    assert disturbed.records(events).keys() == disturbed.records(on_one_machine).keys()
    assert result_hash(fold(events)) == result_hash(fold(on_one_machine))
    starts = disturbed.events_of_kind(WorkerStarted, events)
    assert sorted((start.device, start.node) for start in starts) == [
        (device.name, device.node) for device in devices()
    ]
    assert {start.host for start in starts} == {os.uname().nodename}


@pytest.mark.parametrize("fault", ["die:b/1:2:1", "raise:a/0:1:1"])
def test_a_dead_worker_is_restarted_on_its_node(allocation, tmp_path, monkeypatch, fault, on_one_machine):
    monkeypatch.setenv("FAKE_FAULT", fault)
    events = disturbed.run(tmp_path / "run", PLAN, launcher=make_launcher())
    assert disturbed.counts(events) == {"worker_death": 1, "restart": 1}
    assert result_hash(fold(events)) == result_hash(fold(on_one_machine))
    (restart,) = [start for start in disturbed.events_of_kind(WorkerStarted, events) if start.incarnation == 2]
    assert restart.node == next(device.node for device in devices() if device.name == restart.device)


def test_workers_of_a_killed_srun_restart_on_the_same_node(allocation, tmp_path, on_one_machine):
    """They resume with a new supervisor."""
    started_workers = {}

    class Remembering(SlurmLauncher):
        def start(self, order):
            started_workers[order.identity] = worker = super().start(order)
            return worker

    watcher = disturbed.Striking(lambda worker: os.kill(started_workers[f"{worker.worker}/1"].pid, signal.SIGKILL))
    launcher = Remembering("support.workers.fake_worker:main")
    launcher.use(devices())
    events = disturbed.run(tmp_path / "run", PLAN, watcher, launcher=launcher)
    assert disturbed.counts(events) == {"worker_death": 2, "restart": 2}
    assert result_hash(fold(events)) == result_hash(fold(on_one_machine))
    node = watcher.struck.node
    starts = disturbed.events_of_kind(WorkerStarted, events)
    deaths = disturbed.incidents(events, "worker_death")
    assert all(f"was lost with its supervisor on {node}" in death.detail for death in deaths)
    assert {start.node for start in starts if start.incarnation == 2} == {node}
    assert not any(alive(start.pid) for start in starts if (start.node, start.incarnation) == (node, 1))


def test_an_experiment_resumes_after_its_coordinator_was_killed(allocation, cluster, tmp_path, on_one_machine):
    """Kill the coordinator while one worker hangs; resume with the nodes in another order."""
    run = tmp_path / "run"
    child = coordinator(run, "cluster.test_slurm", "PLAN", FAKE_FAULT="hang:a/1:2:1")
    journal = run / "events.jsonl"
    cluster.wait(
        lambda: (
            journal.exists()
            and b'"episode"' in journal.read_bytes()
            and journal.read_bytes().count(b'"worker_started"') == len(PLAN.lanes)
        )
    )
    pids = [start.pid for start in disturbed.events_of_kind(WorkerStarted, disturbed.events_of(run))]
    child.kill()
    child.wait()
    assert len(pids) == 6
    cluster.wait(lambda: not any(map(alive, pids)))
    events = disturbed.resume(run, launcher=make_launcher(("n3", "n1", "n2")))
    assert result_hash(fold(events)) == result_hash(fold(on_one_machine))
    assert len(disturbed.incidents(events, "moved")) == 6, "every lane is on another node now"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_workers_survive_a_paused_coordinator(allocation, tmp_path):
    events = suspend_and_finish(coordinator(tmp_path / "run", "cluster.test_slurm", "LONGER"), tmp_path / "run")
    assert result_hash(fold(events)) == result_hash(fold(disturbed.run(tmp_path / "alone", LONGER)))


def test_workers_killed_by_a_preemption_do_not_count_as_failures(allocation, cluster, tmp_path, monkeypatch):
    """A preemption sends SIGTERM to the coordinator and kills its steps before the barrier is reached."""
    monkeypatch.setenv("FAKE_FAULT", "hang:b/0:2")

    def preempt(_worker):
        os.kill(os.getpid(), signal.SIGTERM)
        cluster.run("scancel", "--signal=KILL", allocation)

    with pytest.raises(Interrupted, match="stopped by SIGTERM, which ended worker"):
        disturbed.run(tmp_path / "run", PLAN, disturbed.Striking(preempt, "a/0"), launcher=make_launcher())
    events = disturbed.events_of(tmp_path / "run")
    assert disturbed.counts(events) == {"interrupted": 1}
    assert events[-1].status == "interrupted"


def test_cores_per_node_are_parsed_from_slurms_notation():
    assert expand_cores("4(x2),8") == [4, 4, 8]
    assert expand_cores("2") == [2]
    assert expand_cores("") == expand_cores("four") == []
