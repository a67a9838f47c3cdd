"""Experiments on a real Ray cluster: records as on one machine, and recovery from killed processes and nodes."""

import os
import signal
import time
from pathlib import Path

import pytest
from support.clusters import ray_cluster
from support.clusters.launcher_contract import check_contract
from support.clusters.ray_cluster import CORES, RayNodes
from support.commands.progress_lines import without_progress
from support.coordinators import disturbed
from support.coordinators.killed_processes import alive
from support.coordinators.suspended_coordinator import coordinator, suspend_and_finish
from support.plans import fake_plans
from support.processes.children import python
from support.processes.waiting import eventually

from esper_ab.analysis.result_hash import result_hash
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Device, Questions
from esper_ab.control.nodes import examine_nodes
from esper_ab.control.preflight import examine
from esper_ab.control.reservation import reserve
from esper_ab.control.rules.limits import Limits
from esper_ab.journal.events import ExperimentEnded, WorkerStarted
from esper_ab.journal.fold import fold
from esper_ab.launchers._ray_actor import Actor, RayErrand
from esper_ab.launchers.ray import RayLauncher

ROOT = Path(__file__).resolve().parents[2]
PLAN = fake_plans.plan(6, ("a", "b", "c"), seeds=4, episodes=3)
SMALLER = fake_plans.plan(3, ("a", "b", "c"), seeds=2, episodes=3)
LONGER = fake_plans.plan(3, ("a", "b", "c"), seeds=60, episodes=3)  # longer than it takes to notice a loss
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cluster():
    """Start a Ray cluster of three nodes; this process is a driver."""
    if reason := ray_cluster.missing():
        pytest.skip(reason)
    python_path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{ROOT / 'tests'}:{ROOT}"  # for all processes of the cluster
    with RayNodes() as nodes:
        os.environ["RAY_ADDRESS"] = nodes.address
        yield nodes
        # Imported here, because ray is only installed where clusters are tested.
        import ray

        ray.shutdown()
    del os.environ["RAY_ADDRESS"]
    os.environ.pop("PYTHONPATH") if python_path is None else os.environ.update(PYTHONPATH=python_path)


def devices(launcher):
    """Return the cores of all nodes, numbered as by the preflight."""
    return [
        Device(name=f"cpu:{CORES * place + core}", title="", uuid="", memory_bytes=1 << 30, node=node.name)
        for place, node in enumerate(launcher.nodes)
        for core in range(CORES)
    ]


def make_launcher(**options):
    launcher = RayLauncher("support.workers.fake_worker:main", **options)
    launcher.use(devices(launcher))
    return launcher


@pytest.fixture(scope="module")
def on_one_machine(tmp_path_factory):
    return disturbed.run(tmp_path_factory.mktemp("run"), PLAN)


@pytest.fixture(scope="module")
def smaller_on_one_machine(tmp_path_factory):
    return disturbed.run(tmp_path_factory.mktemp("run"), SMALLER)


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_worker(worker):
    os.kill(worker.pid, signal.SIGKILL)


def kill_supervisor(worker):
    os.kill(parent(worker.pid), signal.SIGKILL)


def test_the_ray_launcher_passes_the_launcher_contract(cluster, tmp_path):
    check_contract("ray", tmp_path)


def test_records_on_ray_equal_those_of_one_machine(cluster, tmp_path, on_one_machine):
    launcher = make_launcher()
    events = disturbed.run(tmp_path / "run", PLAN, launcher=launcher)
    assert events[-1] == ExperimentEnded(status="finished", detail="")
    assert not disturbed.incidents(events)
    assert disturbed.records(events).keys() == disturbed.records(on_one_machine).keys()
    assert result_hash(fold(events)) == result_hash(fold(on_one_machine))
    starts = disturbed.events_of_kind(WorkerStarted, events)
    assert sorted(start.node for start in starts) == sorted(device.node for device in devices(launcher))


@pytest.mark.parametrize("strike", [kill_worker, kill_supervisor])
def test_a_worker_killed_alone_or_with_its_supervisor_is_restarted(cluster, tmp_path, strike, on_one_machine):
    watcher = disturbed.Striking(strike)
    events = disturbed.run(tmp_path / "run", PLAN, watcher, launcher=make_launcher())
    counts = disturbed.counts(events)
    assert (counts["worker_death"], counts["restart"]) == (1, 1)
    assert set(counts) <= {"worker_death", "restart", "start_delayed"}
    assert result_hash(fold(events)) == result_hash(fold(on_one_machine))
    assert not alive(watcher.struck.pid)
    (death,) = disturbed.incidents(events, "worker_death")
    assert ("was lost with its supervisor on" in death.detail) is (strike is kill_supervisor)


def test_two_experiments_can_share_the_cluster(cluster, tmp_path, smaller_on_one_machine):
    """Each takes three of six cores and is unaware of the other."""
    coordinators = [coordinator(tmp_path / name, "cluster.test_ray", "SMALLER") for name in ("one", "two")]
    assert [child.wait(300) for child in coordinators] == [0, 0]
    for name in ("one", "two"):
        events = disturbed.events_of(tmp_path / name)
        assert result_hash(fold(events)) == result_hash(fold(smaller_on_one_machine))


def test_an_experiment_resumes_after_its_coordinator_was_killed(cluster, tmp_path, on_one_machine):
    run = tmp_path / "run"
    child = coordinator(run, "cluster.test_ray", "PLAN")
    journal = run / "events.jsonl"
    eventually(lambda: journal.exists() and journal.read_bytes().count(b'"worker_started"') == len(PLAN.lanes))
    pids = [start.pid for start in disturbed.events_of_kind(WorkerStarted, disturbed.events_of(run))]
    child.kill()
    child.wait()
    eventually(lambda: not any(map(alive, pids)), 30.0)
    events = disturbed.resume(run, launcher=make_launcher())
    assert result_hash(fold(events)) == result_hash(fold(on_one_machine))


@pytest.mark.slow
def test_workers_survive_a_paused_coordinator(cluster, tmp_path):
    events = suspend_and_finish(coordinator(tmp_path / "run", "cluster.test_ray", "LONGER"), tmp_path / "run")
    assert result_hash(fold(events)) == result_hash(fold(disturbed.run(tmp_path / "alone", LONGER)))


def test_a_launch_without_free_resources_times_out(cluster, capfd):
    holding_launcher = make_launcher()
    waiting_launcher = make_launcher(ray_wait=12.0)
    holding_launcher.reserve(SMALLER.lanes)
    try:
        with pytest.raises(UsageError) as refusal:
            reserve(waiting_launcher, PLAN.lanes, devices(waiting_launcher))
        assert "6 lanes, cpu:0 to cpu:5, got no resources within 12 s" in str(refusal.value)
        assert "3 of 6 CPUs are free" in str(refusal.value)
        assert "warning: 6 lanes, cpu:0 to cpu:5, wait for resources in Ray's cluster" in capfd.readouterr().err
    finally:
        holding_launcher.release()
    waiting_launcher.reserve(PLAN.lanes)  # the failed attempt has released everything
    waiting_launcher.release()


def test_ray_labels_select_the_nodes(cluster):
    assert len(RayLauncher(ray_label={"kind": "tested"}).nodes) == 3
    with pytest.raises(UsageError, match="launcher ray: no node with kind=other has a CPU; the cluster has 3"):
        RayLauncher(ray_label={"kind": "other"})


def test_the_preflight_examines_every_node(cluster, tmp_path):
    launcher = RayLauncher()
    questions = Questions(task="synthetic", data_dir="", user_rewards=())
    machine = examine_nodes(examine(questions), questions, launcher, tmp_path)
    names = {node.name for node in launcher.nodes}
    assert {device.node for device in machine.devices} == names
    assert len(names) == 3


def test_a_node_without_the_working_directory_is_refused(cluster):
    import ray

    launcher = RayLauncher()
    actor = ray.remote(Actor).remote("/nowhere")
    with (
        RayErrand(launcher._ray, actor, "n2", ["true"], b"") as errand,
        pytest.raises(UsageError, match=r"^node n2 cannot start the preflight \(.*'/nowhere'\): all nodes"),
    ):
        errand.communicate(timeout=60.0)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ray://somewhere:10001", "workers cannot reach the coordinator through Ray's client"),
        ("nonsense", "launcher ray: no Ray cluster at nonsense"),
    ],
)
def test_a_ray_address_without_a_cluster_is_refused_in_one_line(address, message):
    pytest.importorskip("ray")
    result = python("-m", "esper_ab.commands.cli", "launch", "--launcher", "ray", "--ray-address", address)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(without_progress(result.stderr)) == 1


def test_lanes_of_a_lost_node_move_to_other_nodes(cluster, tmp_path, capfd):
    """Kill a raylet: its supervisors and workers end, Ray moves the lanes and prints nothing to stdout.

    This must be the last test of the file, as the node is not replaced.
    """
    import ray

    def lose_node(worker):
        (number,) = (
            node["NodeID"]
            for node in ray.nodes()
            if node["Alive"] and node["NodeID"].startswith(worker.node.rpartition("/")[2])
        )
        lost_at_s.append(time.monotonic())
        cluster.lose(number)

    lost_at_s: list[float] = []
    watcher = disturbed.Striking(lose_node)
    events = disturbed.run(tmp_path / "run", LONGER, watcher, launcher=make_launcher(), limits=Limits(floor_s=30.0))
    assert capfd.readouterr().out == ""
    assert result_hash(fold(events)) == result_hash(fold(disturbed.run(tmp_path / "alone", LONGER)))
    assert disturbed.counts(events)["worker_death"] in (1, 2), "as many lanes as were on the node"
    restarts = [start for start in disturbed.events_of_kind(WorkerStarted, events) if start.incarnation > 1]
    assert restarts
    assert watcher.struck.node not in {start.node for start in restarts}
    assert {entry.category for entry in disturbed.incidents(events)} <= {
        "worker_death",
        "start_delayed",
        "restart",
        "moved",
    }
    assert len(disturbed.incidents(events, "moved")) == len(restarts)
    assert time.monotonic() - lost_at_s[0] < 240
