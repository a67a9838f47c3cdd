"""Limits and counts of control groups of both generations, from folders of machines that are not here."""

import signal
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans.worker_orders import order

from esper_ab.control.fleet import WorkerHandle, ending
from esper_ab.health import control_groups
from esper_ab.health.control_groups import OomWatch

FIRST = {
    "memory.limit_in_bytes": "1000\n",
    "memory.usage_in_bytes": "700\n",
    "memory.stat": "inactive_file 1\ntotal_inactive_file 300\n",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
}
SECOND = {
    "memory.max": "1000\n",
    "memory.current": "700\n",
    "memory.stat": "anon 400\ninactive_file 300\n",
    "memory.events": "low 0\noom 4\noom_kill 3\noom_group_kill 0\n",
}


def group(folder, files):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize("files", [FIRST, SECOND])
def test_both_generations_say_the_same(tmp_path, files):
    groups = [group(tmp_path / "a", files), tmp_path / "nowhere"]
    found = control_groups.memory(groups)
    assert found is not None
    assert (found.limit, found.used, found.left) == (1000, 400, 600)
    assert found.by.endswith(f"of control group {tmp_path}/a")
    assert control_groups.kills(groups) == 3


@pytest.mark.parametrize(
    "nothing",
    [
        {},
        {"memory.max": "max\n"},
        {"memory.limit_in_bytes": "9223372036854771712\n"},
    ],
)
def test_no_limit_is_none(tmp_path, nothing):
    assert control_groups.memory([group(tmp_path / "a", nothing)]) is None


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=4))
def test_the_group_that_leaves_the_least_counts(tmp_path_factory, limits):
    root = tmp_path_factory.mktemp("groups")
    groups = [
        group(root / str(at), {"memory.max": f"{limit}\n", "memory.current": f"{used}\n"})
        for at, (limit, used) in enumerate(limits)
    ]
    found = control_groups.memory(groups)
    assert found is not None
    assert found.left == min(max(0, limit - used) for limit, used in limits)


def test_the_innermost_group_that_counts_says_how_many_were_ended(tmp_path):
    inner = group(tmp_path / "a", {})
    outer = group(tmp_path, {"memory.events": "oom_kill 7\n"})
    assert control_groups.kills([inner, outer]) == 7
    group(inner, {"memory.events": "oom_kill 2\n"})
    assert control_groups.kills([inner, outer]) == 2


def test_this_process_is_in_groups_below_the_root():
    assert all(folder.is_relative_to("/sys/fs/cgroup") for folder in control_groups.folders())


def handle(exitcode, *, here=True):
    """Of a worker that has ended."""
    gone = SimpleNamespace(name="w00/1", pid=1, sentinel=-1, ended_how="", exitcode=exitcode)
    return WorkerHandle(order=order(node="" if here else "node7"), worker=gone, oom=OomWatch() if here else None)


@pytest.mark.parametrize("files", [FIRST, SECOND])
def test_out_of_memory_is_named_with_the_limit_of_the_group(tmp_path, monkeypatch, files):
    folder = group(tmp_path / "a", files)
    monkeypatch.setattr(control_groups, "folders", lambda: [folder])
    watched = handle(-signal.SIGKILL)
    assert "has not reported it" in ending(watched)
    group(folder, {name: text.replace("oom_kill 3", "oom_kill 4") for name, text in files.items()})
    assert ending(watched).startswith("was killed by SIGKILL: since it started, the kernel has killed a process")
    assert f"of control group {folder}: 0.00 GiB)" in ending(watched)


def test_another_death_is_not_taken_for_it():
    assert "has not reported it" in ending(handle(-signal.SIGKILL))
    assert ending(handle(-signal.SIGSEGV)) == "was killed by SIGSEGV"
    assert ending(handle(-40)) == "was killed by signal 40"
    assert ending(handle(-40, here=False)) == "was killed by signal 40 on node7"
    assert ending(handle(3)) == "ended with exit status 3"
