"""Benchmarks: fake workers are still what a coordinator takes for workers, and the loop is what a bank does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from benchmarks import coordination
from benchmarks.worlds import Case, assert_equal


def test_a_cell_is_carried_out_to_its_last_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where its experiment is
    found = coordination.cell(blocks=2, runs=2, n_envs=2, episodes=4)
    assert found["rounds"] == 3
    assert found["bytes_per_record"] > 500
    assert 0.0 < found["wait_ms"]["median"] <= found["wait_ms"]["max"]
    assert list(tmp_path.iterdir()) == []


def test_a_bank_trains_what_plain_modules_in_a_loop_train() -> None:
    assert_equal(Case(task="digits", n_envs=7, live_seeds=3), torch.float64, 1e-9)
