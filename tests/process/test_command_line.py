"""The commands as a shell sees them: one line per error, exit statuses, a plan for this machine, experiment files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab, stdout_of
from support.commands.progress_lines import without_progress
from support.processes.children import environment, python

from esper_ab.contracts.machine import Questions
from esper_ab.control.preflight import examine
from esper_ab.journal.file import Journal
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME

TINY = (
    "--task",
    "synthetic",
    "--groups",
    "wait,random",
    "--episodes",
    "1",
    "--steps",
    "2",
    "--seeds",
    "1",
    "--eval-episodes",
    "1",
    "--devices",
    "cpu:0,cpu:1",
    "--launcher",
    "inline",
    "--quiet",
)
TOML = """
groups = ["shaped", "wait"]
task = "synthetic"
seeds = 2
episodes = 1
steps = 3
n_envs = 2
devices = ["cpu:0", "cpu:1"]

[launcher]
name = "inline"
"""
PYTHON = """
from esper_ab import create_experiment

experiment = (
    create_experiment("x").add_variant("a").add_variant("b", reward="mine:reward")
    .set_base_config(task="synthetic", episodes=1, steps=3, n_envs=2, devices=["cpu:0", "cpu:1"]).build()
)
"""


def test_the_preflight_describes_the_machine_and_user_rewards(warm_children):
    machine = examine(Questions(task="digits", data_dir="", user_rewards=("nowhere.py:reward", "json:nothing")))
    assert "cpu:0" in machine.names("cpu")
    assert {"shaped", "simplified", "sparse", "minimal"} <= set(machine.rewards)
    assert {task.name for task in machine.tasks} >= {"digits", "synthetic", "cifar10"}
    assert next(task for task in machine.tasks if task.name == "cifar10").host_params == 6418
    assert machine.multiply_adds_per_s > 0
    assert machine.task_problem == ""
    assert "no file" in machine.user_rewards[0].problem
    assert "no function 'nothing'" in machine.user_rewards[1].problem


def test_a_dry_run_prints_the_plan_without_creating_files(tmp_path):
    flags = ("--groups=shaped,wait", "--devices", "cpu:0", "--placement=share", "--dry-run", "--json")
    answer = json.loads(stdout_of("launch", *flags, folder=tmp_path))
    assert [lane["name"] for lane in answer["plan"]["lanes"]] == ["cpu:0/0", "cpu:0/1"]
    assert answer["estimate"]["duration_s"] > 0
    assert answer["plan"]["step_s"] == answer["estimate"]["step_s"] > 0
    assert list(tmp_path.iterdir()) == []


def test_python_m_esper_ab_behaves_like_the_installed_command(tmp_path):
    """A select.py in the working directory does not shadow the standard library's."""
    (tmp_path / "select.py").write_text("raise SystemExit(3)")
    words = ("power", "--sd-run", "3.5", "--margin", "2")
    result = python("-m", "esper_ab", *words, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == stdout_of(*words, folder=tmp_path)


@pytest.mark.parametrize("args", [("--groups", "shapd,wait"), ("bad.toml",)])
def test_bad_input_is_refused_in_one_line_with_exit_status_2(tmp_path, args):
    """The text of the line, and many other inputs, are in tests/golden/refusals."""
    (tmp_path / "bad.toml").write_text("episodes = = 3")
    result = python("-m", "esper_ab.launch", *args, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert len(without_progress(result.stderr)) == 1


def test_a_launch_killed_before_its_first_record_can_be_repeated(tmp_path):
    leftover = tmp_path / "experiments" / "lab"
    leftover.mkdir(parents=True)
    Journal(leftover).close()
    (leftover / JOURNAL_NAME).write_bytes(b'{"n":0,')
    (leftover / "experiment.toml").write_text("of the one that was killed")
    assert esper_ab("resume", leftover).returncode == 5  # like `tidy --check`
    stdout_of("launch", *TINY, "--name", "lab", folder=tmp_path)
    assert load(leftover).history.finished
    second_result = esper_ab("launch", *TINY, "--name", "lab", folder=tmp_path)
    assert second_result.returncode == 2
    assert "exists already" in second_result.stderr


def test_verbose_output_names_every_record(tmp_path):
    (tmp_path / "x.toml").write_text(TOML)
    result = esper_ab("launch", "x.toml", "-v", "--output-dir", "out", "--no-parallel", "--name", "x", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    for words in ("shaped/0 started on", "wait/1 episode 0: outcome", "wait/1 evaluated: ", "experiment finished"):
        assert words in result.stderr
    experiment = load(tmp_path / "out" / "x").history.plan.experiment
    assert (experiment.name, experiment.max_parallel, experiment.placement) == ("x", 1, "sequence")


@pytest.mark.slow  # in this process: unit/esper_ab/api/test_declared.py, growth/test_reward_lookup.py
def test_workers_find_a_reward_beside_the_experiment_file_from_any_directory(tmp_path):
    """The installed script does not have the working directory on its path; `python -m` has."""
    (tmp_path / "prices.py").write_text("PRICE = 0.5\n")
    (tmp_path / "mine.py").write_text(
        "from prices import PRICE\n\ndef reward(facts, settings):\n    return -PRICE * (facts.acc_delta > 0)\n"
    )
    (tmp_path / "experiment.py").write_text(PYTHON)
    other_folder = tmp_path / "elsewhere"
    other_folder.mkdir()
    line = [Path(sys.executable).with_name("esper-ab"), "launch", "../experiment.py", "--no-retry"]
    result = subprocess.run(line, cwd=other_folder, capture_output=True, text=True, timeout=280, check=False)
    assert result.returncode == 0, result.stderr
    history = load(other_folder / "experiments" / "x").history
    assert history.runs["b/0"].ref.reward_mode == f"{tmp_path / 'mine.py'}:reward"  # what resume will look for


def test_an_address_space_too_small_for_torch_is_refused_with_the_limit(tmp_path):
    words = [sys.executable, "-m", "esper_ab.commands.cli", "launch", "--groups", "wait,random", "--dry-run"]
    result = subprocess.run(
        ["bash", "-c", 'ulimit -v 400000; exec "$@"', "bash", *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "with an address space of 390 MiB" in result.stderr
    assert "raise `ulimit -v`" in result.stderr
