"""Real environments of Gymnasium, from the command to the verdict."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.chaos import Fault, striking
from support.gym_world import own_file
from support.in_process import esper_ab

from esper_ab.design.calibration_file import load_calibration
from esper_ab.journal.load import load

SMALL = ("--margin", "10", "--seeds", "1", "--n-envs", "2", "--steps", "30", "--eval-episodes", "2", "--quiet",
         "--devices", "cpu:0", "--placement", "alternate")  # fmt: skip


def launch(folder: Path, name: str, *flags: str, groups: str = "a=env,b=env", task: str = "gym:CartPole-v1") -> dict:
    asked = ("launch", "--task", task, "--groups", groups, "--output-dir", str(folder), "--name", name, *SMALL, *flags)
    ended = esper_ab(*asked)
    assert ended.returncode == 0, ended.stderr
    history = load(folder / name).history
    return {
        key: [*(record.digest for record in run.curve()), run.evaluation.digest] for key, run in history.runs.items()
    }


def test_equal_groups_are_equal_and_neither_company_nor_names_change_one(tmp_path: Path) -> None:
    whole = launch(tmp_path, "whole", "--episodes", "2")
    assert whole["a/0"] == whole["b/0"]
    assert launch(tmp_path, "renamed", "--episodes", "2", groups="random,c=env")["c/0"] == whole["a/0"]
    verdict = json.loads((tmp_path / "whole" / "verdict.json").read_text())
    assert verdict["task"] == "gym:CartPole-v1"
    assert "%" not in verdict["comparisons"][0]["sentence"]


@pytest.mark.slow
@pytest.mark.parametrize("rollout", ["episodes", "continues"])
def test_deaths_change_no_record_of_an_environment_of_ones_own(tmp_path: Path, rollout: str) -> None:
    own = own_file(tmp_path)
    how = ("--episodes", "4", "--set", f"gym.rollout={rollout}", "--set", "gym.episode_steps=9", "--outcome",
           f"{own}:outcome")  # fmt: skip
    groups, task = f"env,mine={own}:weighted", f"{own}:make"
    whole = launch(tmp_path, "whole", *how, groups=groups, task=task)
    first, second = (Fault(kind="SIGKILL", run_name=name, milestone=at) for name, at in (("env/0", 3), ("mine/0", 4)))
    with striking(tmp_path / "again", first, second) as chaos:
        assert launch(tmp_path, "again", *how, groups=groups, task=task) == whole
    assert chaos.struck == [first, second]
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
    ended = esper_ab(
        "calibrate", "--task", "gym:CartPole-v1", "--runs", "4", "--episodes", "1", "--output-dir", tmp_path,
        "--name", "x", *SMALL[4:],
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = load_calibration(tmp_path / "x")
    assert (found.mode, found.margin_named, found.spread.runs) == ("env", False, 4)
    assert found.deterministic
    assert found.margin > found.spread.sd / 10.0


@pytest.mark.slow
def test_rollouts_in_which_no_episode_ends_are_read_by_every_command(tmp_path: Path) -> None:
    """No pole falls within three steps, so training has no outcome at all."""
    how = ("--episodes", "2", "--set", "gym.rollout=resets", "--steps", "3")
    launch(tmp_path, "x", *how, groups="env,random")
    found = load(tmp_path / "x")
    envs = [env for run in found.history.runs.values() for record in run.curve() for env in record.envs]
    assert {env.outcome for env in envs} == {None}
    for command in ("status", "report", "tidy", "export"):
        ended = esper_ab(command, tmp_path / "x")
        assert ended.returncode == 0, ended.stderr
    asked = "SELECT count(*) AS a, count(outcome) AS b, count(length) AS c, count(reward_sum) AS d FROM episodes"
    answer = esper_ab("query", tmp_path / "x", "--json", asked)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == [{"a": 4, "b": 0, "c": 0, "d": 4}]
    calibrated = esper_ab(
        "calibrate", "--task", "gym:CartPole-v1", "--runs", "4", "--output-dir", tmp_path, "--name", "c",
        *SMALL[4:], *how
    )
    assert calibrated.returncode == 0, calibrated.stderr
    of_curves = load_calibration(tmp_path / "c")
    assert (of_curves.autocorrelation, of_curves.intraclass) == (None, None)
