"""docs/evidence/shaping.md: its numbers are those of the summary kept in examples, its rewards are what it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from support.in_process import done

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "shaping"


@pytest.fixture(scope="module")
def rewards():
    spec = importlib.util.spec_from_file_location("shaping_rewards", EXAMPLE / "rewards.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def walk(pushes: list[int]) -> np.ndarray:
    env = gymnasium.make("MountainCar-v0", disable_env_checker=True)
    seen = [env.reset(seed=3)[0]]
    seen += [env.step(push)[0] for push in pushes]
    return np.stack(seen)


def facts(seen: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(observation=seen[:-1], next_observation=seen[1:], env_reward=-np.ones(len(seen) - 1))


def test_what_the_page_prints_is_in_the_summary() -> None:
    page, summary = ((DOCS / "evidence" / "shaping.md").read_text(), (EXAMPLE / "summary.txt").read_text())
    quoted = page.split("a page of figures")[1].split("It took")[0]
    printed = " ".join(summary.split())
    for line in filter(None, map(str.strip, quoted.splitlines()[1:])):
        assert " ".join(line.split()) in printed
    assert "energy's own reward rose" in quoted
    assert "4          -152.80  -130.95" in summary
    assert "-152.80 against -130.95" in page


def test_the_code_of_the_page_is_that_of_the_example() -> None:
    code = (DOCS / "evidence" / "shaping.md").read_text().split("```python\n")[1].split("```")[0]
    for function in code.strip().split("\n\n\n"):
        assert function in (EXAMPLE / "rewards.py").read_text()


def test_energy_changes_by_pushing_alone_and_gains_add_up_to_the_ends(rewards) -> None:
    pushed = rewards.mechanical(walk([2 if i % 40 < 20 else 0 for i in range(120)]))
    rolling = rewards.mechanical(walk([1] * 120))
    assert np.ptp(rolling) < 0.2 * np.ptp(pushed)  # Gymnasium steps by a rule that keeps energy roughly
    seen = walk([2] * 30 + [0] * 40)
    paid, ends = facts(seen), rewards.mechanical(seen[[0, -1]])
    total = rewards.gain(paid, rewards.GainSettings(weight=7.0)).sum() + len(seen) - 1
    assert total == pytest.approx(7.0 * (ends[1] - ends[0]))
    assert (rewards.energy(paid, rewards.EnergySettings()) > -1.0).all()
    at_rest = rewards.mechanical(np.array([[-np.pi / 6, 0.0], [np.pi / 6, 0.0]], dtype=np.float32))
    assert at_rest == pytest.approx([0.0, 1.0], abs=1e-6)


def test_the_command_of_the_page_plans_the_experiment(tmp_path: Path) -> None:
    told = done("launch", EXAMPLE / "experiment.toml", "--output-dir", tmp_path, "--dry-run")
    assert "energy" in told
    assert "8 seeds" in told


@pytest.mark.slow
@pytest.mark.timeout(1800)  # four minutes on two free cores
def test_the_reward_that_rises_further_is_worse_by_the_outcome(tmp_path: Path) -> None:
    done("launch", EXAMPLE / "experiment.toml", "--output-dir", tmp_path, "--name", "again", "--quiet",
         "--seeds", "6", "--rng-seed", "77")  # fmt: skip
    summary = " ".join((tmp_path / "again" / "summary.txt").read_text().split())
    assert "energy is worse than gain by" in summary
    assert "energy's own reward rose in 6 of 6 runs, and by the outcome it is worse than gain" in summary
