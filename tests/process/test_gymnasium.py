"""Real environments of Gymnasium, from the command to the verdict."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.being_killed import workers_when_recorded
from support.conducted import digests
from support.gym_world import own_file
from support.in_process import done, esper_ab

from esper_ab.design.calibration_file import load_calibration
from esper_ab.journal.load import load

SMALL = ("--margin", "10", "--seeds", "1", "--n-envs", "2", "--steps", "30", "--eval-episodes", "2", "--quiet",
         "--devices", "cpu:0", "--placement", "share")  # fmt: skip


def asked(folder: Path, name: str, *flags: str, groups: str = "a=env,b=env", task: str = "gym:CartPole-v1") -> list:
    return ["launch", "--task", task, "--groups", groups, "--output-dir", folder, "--name", name, *SMALL, *flags]


def launch(folder: Path, name: str, *flags: str, **of_both: str) -> dict[str, list[str]]:
    done(*asked(folder, name, *flags, **of_both))
    return digests(folder / name)


def test_equal_groups_are_equal_and_neither_company_nor_names_change_one(tmp_path: Path) -> None:
    whole = launch(tmp_path, "whole", "--episodes", "2")
    assert whole["a/0"] == whole["b/0"]
    threads = ("--episodes", "2", "--launcher", "inline")
    assert launch(tmp_path, "renamed", *threads, groups="random,c=env")["c/0"] == whole["a/0"]
    verdict = json.loads((tmp_path / "whole" / "verdict.json").read_text())
    assert verdict["task"] == "gym:CartPole-v1"
    assert "%" not in verdict["comparisons"][0]["sentence"]


@pytest.mark.slow
@pytest.mark.parametrize("rollout", ["episodes", "continues"])
def test_deaths_change_no_record_of_an_environment_of_ones_own(tmp_path: Path, rollout: str) -> None:
    own = own_file(tmp_path)
    how = ("--episodes", "4", "--set", f"gym.rollout={rollout}", "--set", "gym.episode_steps=9", "--higher",
           f"{own}:outcome")  # fmt: skip
    groups, task = f"env,mine={own}:weighted", f"{own}:make"
    whole = launch(tmp_path, "whole", *how, groups=groups, task=task)
    process = subprocess.Popen(
        [sys.executable, "-m", "esper_ab.commands.cli", *asked(tmp_path, "again", *how, groups=groups, task=task)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for recorded in (1, 2):
        *_, last = workers_when_recorded(tmp_path / "again", process, recorded)
        os.kill(last.pid, signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert digests(tmp_path / "again") == whole
    assert "worker_death" in {entry.category for entry in load(tmp_path / "again").history.incidents}


def test_without_gymnasium_the_remedy_is_one_line(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "gymnasium.py").write_text("raise ModuleNotFoundError('none', name='gymnasium')\n")
    monkeypatch.setenv("PYTHONPATH", ":".join([str(tmp_path), *sys.path]))
    ended = esper_ab("launch", "--task", "gym:CartPole-v1", "--groups", "env,random", "--margin", "1", "--dry-run",
                     "--output-dir", str(tmp_path))  # fmt: skip
    assert ended.returncode == 2
    assert "pip install 'esper-ab[gymnasium]'" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_calibration_needs_no_margin_and_gives_one_to_start_from(tmp_path: Path) -> None:
    done("calibrate", "--task", "gym:CartPole-v1", "--runs", "4", "--episodes", "1", "--output-dir", tmp_path,
         "--name", "x", *SMALL[4:])  # fmt: skip
    found = load_calibration(tmp_path / "x")
    assert (found.mode, found.margin_named, found.spread.runs) == ("env", False, 4)
    assert found.deterministic
    assert found.margin > found.spread.sd / 10.0
