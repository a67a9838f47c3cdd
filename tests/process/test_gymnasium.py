"""Real environments of Gymnasium, from the command to the verdict."""

import json
import sys
from pathlib import Path

import pytest
from support.conducted import digests
from support.in_process import done, esper_ab

from esper_ab.design.calibration_file import load_calibration

SMALL = ("--margin", "10", "--seeds", "1", "--n-envs", "2", "--steps", "30", "--eval-episodes", "2", "--quiet",
         "--devices", "cpu:0", "--placement", "share")  # fmt: skip


def launch(folder: Path, name: str, groups: str) -> dict[str, list[str]]:
    done("launch", "--task", "gym:CartPole-v1", "--groups", groups, "--output-dir", folder, "--name", name,
         "--episodes", "2", "--launcher", "inline", *SMALL)  # fmt: skip
    return digests(folder / name)


def test_equal_groups_are_equal_and_neither_company_nor_names_change_one(tmp_path):
    whole = launch(tmp_path, "whole", "a=env,b=env")
    assert whole["a/0"] == whole["b/0"]
    assert launch(tmp_path, "renamed", "random,c=env")["c/0"] == whole["a/0"]
    verdict = json.loads((tmp_path / "whole" / "verdict.json").read_text())
    assert verdict["task"] == "gym:CartPole-v1"
    assert "%" not in verdict["comparisons"][0]["sentence"]


def test_without_gymnasium_the_remedy_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "gymnasium.py").write_text("raise ModuleNotFoundError('none', name='gymnasium')\n")
    monkeypatch.setenv("PYTHONPATH", ":".join([str(tmp_path), *sys.path]))
    ended = esper_ab("launch", "--task", "gym:CartPole-v1", "--groups", "env,random", "--margin", "1", "--dry-run",
                     "--output-dir", str(tmp_path))  # fmt: skip
    assert ended.returncode == 2
    assert "pip install 'esper-ab[gymnasium]'" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_calibration_needs_no_margin_and_gives_one_to_start_from(tmp_path):
    done("calibrate", "--task", "gym:CartPole-v1", "--runs", "4", "--episodes", "1", "--output-dir", tmp_path,
         "--name", "x", *SMALL[4:])  # fmt: skip
    found = load_calibration(tmp_path / "x")
    assert (found.mode, found.margin_named, found.spread.runs) == ("env", False, 4)
    assert found.deterministic
    assert found.margin > found.spread.sd / 10.0
