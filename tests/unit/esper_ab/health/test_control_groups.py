"""Limits and counters of both versions of control groups, from the files of other machines."""

import signal
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans.worker_orders import order

from esper_ab.control.fleet import WorkerHandle, ending
from esper_ab.health import control_groups
from esper_ab.health.control_groups import OomWatch

VERSION_1 = {
    "memory.limit_in_bytes": "1000\n",
    "memory.usage_in_bytes": "700\n",
    "memory.stat": "inactive_file 1\ntotal_inactive_file 300\n",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
}
VERSION_2 = {
    "memory.max": "1000\n",
    "memory.current": "700\n",
    "memory.stat": "anon 400\ninactive_file 300\n",
    "memory.events": "low 0\noom 4\noom_kill 3\noom_group_kill 0\n",
}


def write_group(folder, files):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize("files", [VERSION_1, VERSION_2])
def test_both_versions_of_control_groups_give_the_same_limit(tmp_path, files):
    groups = [write_group(tmp_path / "a", files), tmp_path / "nowhere"]
    memory = control_groups.memory(groups)
    assert memory is not None
    assert (memory.limit, memory.used, memory.left) == (1000, 400, 600)
    assert memory.by.endswith(f"of control group {tmp_path}/a")
    assert control_groups.kills(groups) == 3


@pytest.mark.parametrize(
    "file_contents",
    [
        {},
        {"memory.max": "max\n"},
        {"memory.limit_in_bytes": "9223372036854771712\n"},
    ],
)
def test_a_control_group_without_a_limit_has_no_memory_limit(tmp_path, file_contents):
    assert control_groups.memory([write_group(tmp_path / "a", file_contents)]) is None


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=4))
def test_the_control_group_with_the_least_free_memory_sets_the_limit(tmp_path_factory, limits):
    root = tmp_path_factory.mktemp("groups")
    groups = [
        write_group(root / str(number), {"memory.max": f"{limit}\n", "memory.current": f"{used_bytes}\n"})
        for number, (limit, used_bytes) in enumerate(limits)
    ]
    memory = control_groups.memory(groups)
    assert memory is not None
    assert memory.left == min(max(0, limit - used_bytes) for limit, used_bytes in limits)


def test_memory_kills_are_read_from_the_innermost_group_with_a_counter(tmp_path):
    inner_group = write_group(tmp_path / "a", {})
    outer_group = write_group(tmp_path, {"memory.events": "oom_kill 7\n"})
    assert control_groups.kills([inner_group, outer_group]) == 7
    write_group(inner_group, {"memory.events": "oom_kill 2\n"})
    assert control_groups.kills([inner_group, outer_group]) == 2


def test_the_control_groups_of_this_process_are_below_the_cgroup_root():
    assert all(folder.is_relative_to("/sys/fs/cgroup") for folder in control_groups.folders())


def ended_worker(exitcode, *, is_local=True):
    """Return the handle of a worker that exited with this code."""
    worker = SimpleNamespace(name="w00/1", pid=1, sentinel=-1, ended_how="", exitcode=exitcode)
    return WorkerHandle(
        order=order(node="" if is_local else "node7"), worker=worker, oom=OomWatch() if is_local else None
    )


@pytest.mark.parametrize("files", [VERSION_1, VERSION_2])
def test_a_kill_for_lack_of_memory_is_reported_with_the_memory_limit(tmp_path, monkeypatch, files):
    folder = write_group(tmp_path / "a", files)
    monkeypatch.setattr(control_groups, "folders", lambda: [folder])
    ended_process = ended_worker(-signal.SIGKILL)
    assert "has not reported it" in ending(ended_process)
    write_group(folder, {name: text.replace("oom_kill 3", "oom_kill 4") for name, text in files.items()})
    assert ending(ended_process).startswith("was killed by SIGKILL: since it started, the kernel has killed a process")
    assert f"of control group {folder}: 0.00 GiB)" in ending(ended_process)


def test_other_deaths_are_not_reported_as_lack_of_memory():
    assert "has not reported it" in ending(ended_worker(-signal.SIGKILL))
    assert ending(ended_worker(-signal.SIGSEGV)) == "was killed by SIGSEGV"
    assert ending(ended_worker(-40)) == "was killed by signal 40"
    assert ending(ended_worker(-40, is_local=False)) == "was killed by signal 40 on node7"
    assert ending(ended_worker(3)) == "ended with exit status 3"
