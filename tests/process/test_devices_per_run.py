"""Planned, trained and recorded: runs of two devices each against the same runs on one device each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.in_process import done
from support.journals import records_of

from esper_ab.journal.fold import History
from esper_ab.journal.load import load

ASKED = (
    "--groups", "shaped,random", "--task", "synthetic", "--episodes", "1", "--steps", "3", "--n-envs", "3",
    "--seeds", "1", "--eval-episodes", "3", "--placement", "sequence", "--quiet",
    "--launcher", "inline",
)  # fmt: skip


def run(folder: Path, *args: str) -> tuple[History, str]:
    asked = [*ASKED, "--output-dir", str(folder.parent), "--name", folder.name, *args]
    said = done("launch", *asked)
    return load(folder).history, said


def test_two_devices_per_run_give_the_outcomes_of_one(tmp_path: Path) -> None:
    two, said = run(tmp_path / "two", "--devices", "cpu:0", "cpu:1", "--devices-per-run", "2", "-v")
    one, _ = run(tmp_path / "one", "--devices", "cpu:0")
    assert "cpu:0+cpu:1/0: 2 on cpu:0, 1 on cpu:1" in said
    for name, spread in two.runs.items():
        alone = one.runs[name]
        assert Counter(env.device for env in records_of(spread)[-1].envs) == {"cpu:0": 2, "cpu:1": 1}
        for mine, theirs in zip(records_of(spread), records_of(alone), strict=True):
            for a, b in zip(mine.envs, theirs.envs, strict=True):
                assert a.measures["val_loss"] == pytest.approx(b.measures["val_loss"], rel=0.02)
                assert a.outcome == pytest.approx(b.outcome, abs=2.0)
        assert spread.evaluation is not None
        assert alone.evaluation is not None
        for a, b in zip(spread.evaluation.episodes, alone.evaluation.episodes, strict=True):
            assert a.outcome.outcome == pytest.approx(b.outcome.outcome, abs=2.0)
