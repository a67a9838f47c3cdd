"""A comparison at several settings: the grid, the folders, when verdicts agree, and going on with what is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sensitivity
from sensitivity import describe_agreement, make_grid, name_folder, summarise

from esper_ab.contracts.errors import UsageError
from esper_ab.journal.load import load
from esper_ab.plan.experiment_directory import check_name


@pytest.mark.parametrize(
    ("verdicts", "missing", "words"),
    [
        (("BETTER", "BETTER"), 0, "agrees: BETTER at every one of the 2 settings"),
        (("BETTER", "BETTER, BELOW MARGIN"), 0, "agrees: BETTER"),
        (("BETTER", "WORSE"), 0, "does not agree: BETTER at lr=1; WORSE at lr=2. The answer depends on the setting"),
        (("BETTER", "EQUIVALENT", "BETTER"), 0, "BETTER at lr=1 and lr=3; EQUIVALENT at lr=2"),
        (("BETTER", "INCONCLUSIVE"), 0, "does not agree everywhere"),
        (("INCONCLUSIVE", "NO INFERENCE"), 0, "no setting carries a verdict"),
        (("BLOCKED", "BLOCKED"), 0, "no setting carries a verdict"),
        (("BETTER",), 1, "1 of 2 settings are still to come; so far BETTER at lr=1"),
        (("BETTER", "WORSE"), 1, "does not agree"),
    ],
)
def test_when_verdicts_agree(verdicts: tuple[str, ...], missing: int, words: str) -> None:
    named = {f"lr={index}": verdict for index, verdict in enumerate(verdicts, start=1)}
    assert describe_agreement(named, missing).startswith(words) or f": {words}" in describe_agreement(named, missing)


def test_the_summary_has_every_setting_and_says_what_several_experiments_cost() -> None:
    verdict = {
        "design": {"alpha": 0.05},
        "comparisons": [{"a": "a", "b": "b", "verdict": "BETTER", "headline": "a is ahead of b by 1 point."}],
    }
    text = summarise([({"lr": str(index)}, verdict if index == 1 else None) for index in range(1, 7)])
    lines = text.splitlines()
    assert lines[:2] == ["lr=1: BETTER: a is ahead of b by 1 point.", "lr=2: to come"]
    assert "a - b: 5 of 6 settings are still to come" in text
    assert "chance of up to 30%; no verdict is given over all settings" in text
    assert "up to 100%" in summarise([({"lr": str(index)}, verdict) for index in range(40)])


def test_the_grid_is_every_combination() -> None:
    grid = make_grid(["episodes=3,6", "ppo.lr=3e-4,1e-3", "growth.blueprints=[norm,attention],[norm]"])
    assert len({tuple(setting.values()) for setting in grid}) == len(grid) == 8
    assert grid[1] == {"episodes": "3", "ppo.lr": "3e-4", "growth.blueprints": "[norm]"}


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ([], "nothing is varied"),
        (["episodes=3", "ppo.lr=1e-3"], "nothing is varied"),
        (["episodes=3,3"], "expected different values"),
        (["episodes=3,"], "expected different values"),
        (["ppo.lr"], r"as in ppo\.epochs=2,4"),
        (["ppo.lr=1e-3,2e-3", "ppo.lr=1e-4,1e-5"], r"ppo\.lr is varied twice"),
        (["reward=shaped,sparse", "reward.mode=sparse,minimal"], r"reward\.mode is varied twice"),
    ],
)
def test_a_grid_that_is_none_is_refused(over: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_grid(over)


def test_folders_are_names_and_differ() -> None:
    long = {"growth.blueprints": "[" + ",".join(["conv_light"] * 30) + "]"}
    longer = {"growth.blueprints": "[" + ",".join(["conv_light"] * 31) + "]"}
    names = [name_folder(one) for one in ({"a": "x/y"}, {"a": "x.y"}, {"a": "x y"}, long, longer)]
    for name in names:
        check_name(name)
    assert len(set(names)) == len(names)
    assert name_folder({"episodes": "3", "ppo.lr": "1e-3"}) == "episodes-3_ppo.lr-1e-3"


@pytest.mark.slow
def test_finished_experiments_are_kept_and_killed_ones_resumed(tmp_path: Path) -> None:
    script = [sys.executable, sensitivity.__file__, "--over", "episodes=1,2", "--out", str(tmp_path / "x")]
    flags = ["--groups", "wait,random", "--replicates", "2", "--task", "synthetic", "--steps", "4", "--n-envs", "2",
             "--eval-hosts", "2", "--quiet"]  # fmt: skip

    def run(*more: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*script, *flags, *more], capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    run("--set", "episodes=soon", status=2)
    assert not (tmp_path / "x").exists()
    run()
    first, second = tmp_path / "x" / "episodes-1", tmp_path / "x" / "episodes-2"
    kept = (first / "events.jsonl").read_bytes()
    assert [len(load(one).history.runs["wait/0"].episodes) for one in (first, second)] == [1, 2]
    journal = (second / "events.jsonl").read_bytes().splitlines(keepends=True)
    (second / "events.jsonl").write_bytes(b"".join(journal[:-4]))  # as if it had been killed
    (second / "verdict.json").unlink()
    again = run().stdout
    assert "\nepisodes-2\n" in again
    assert "\nepisodes-1\n" not in again
    assert (first / "events.jsonl").read_bytes() == kept
    assert json.loads((second / "verdict.json").read_bytes())["state"] == "finished"
    assert (tmp_path / "x" / "summary.txt").read_text() in again
    assert "holds experiments with other arguments" in run("--rng-seed", "9", status=2).stderr
