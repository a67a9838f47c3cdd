"""Editing a reward while its experiment goes on changes nothing: runs have the function that was planned."""

from __future__ import annotations

from pathlib import Path

from esper_ab import ABExperiment, ABVariant, run_ab_test

REWARD = """
from pathlib import Path

import numpy as np


def reward(facts, settings):
    if __file__ != {original!r}:
        Path({original!r}).write_text("raise RuntimeError('this is the next idea')")
    return np.ones(len(facts.op))
"""


def test_every_run_has_the_reward_that_was_planned(tmp_path: Path) -> None:
    """The copy edits the original at its first step, so that every later run finds another one there."""
    original = tmp_path / "mine.py"
    original.write_text(REWARD.format(original=str(original)))
    variants = [ABVariant("edited", overrides={"reward": f"{original}:reward"}), ABVariant("b")]
    base = {"task": "synthetic", "episodes": 1, "n_envs": 2, "steps": 3, "eval_episodes": 2}
    experiment = ABExperiment("x", variants=variants, runs_per_variant=2, base_config=base)
    results = run_ab_test(experiment, tmp_path / "runs", launcher="inline")
    assert "the next idea" in original.read_text()
    assert [run.error for run in results["edited"]] == ["", ""]
    rewards = results.loaded.query("SELECT reward_sum FROM episodes WHERE group_id = 'edited'").fetchall()
    assert rewards == [(3.0,), (3.0,)]
