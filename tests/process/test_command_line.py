"""The commands as a shell sees them: one line of error, the right exit status, a plan from the real machine."""

import json
import subprocess
from pathlib import Path

import pytest
from support.children import python

from esper_ab.contracts.children import Machine, Questions
from esper_ab.control.preflight import examine


def launch(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "esper_ab.launch", *args, folder=folder)


@pytest.fixture(scope="module")
def machine(warm_children: None) -> Machine:
    return examine(Questions(task="digits", data_dir="", user_rewards=("nowhere.py:reward", "json:nothing")))


def test_preflight_finds_the_machine_and_checks_user_rewards(machine):
    assert "cpu:0" in machine.names("cpu")
    assert {"shaped", "simplified", "sparse", "minimal"} <= set(machine.rewards)
    assert {task.name for task in machine.tasks} >= {"digits", "synthetic", "cifar10"}
    assert next(task for task in machine.tasks if task.name == "cifar10").host_params == 6418
    assert machine.multiply_adds_per_s > 0
    assert machine.task_problem == ""
    assert "no file" in machine.user_rewards[0].problem
    assert "no function 'nothing'" in machine.user_rewards[1].problem


def test_dry_run_prints_the_plan_and_makes_nothing(tmp_path):
    done = launch(tmp_path, "--groups=shaped,wait", "--devices", "cpu:0", "--placement=share", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [lane["name"] for lane in answer["plan"]["lanes"]] == ["cpu:0/0", "cpu:0/1"]
    assert answer["estimate"]["duration_s"] > 0
    assert answer["plan"]["step_s"] == answer["estimate"]["step_s"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("args", [("--groups", "shapd,wait"), ("bad.toml",)])
def test_bad_input_is_one_line_and_status_2(tmp_path, args):
    """What the line says, and many other inputs: tests/golden/refusals."""
    (tmp_path / "bad.toml").write_text("episodes = = 3")
    done = launch(tmp_path, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
