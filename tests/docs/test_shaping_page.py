"""docs/evidence/shaping.md: its numbers are those of the summary kept in examples, its rewards are what it says."""

from pathlib import Path

import pytest
from support.in_process import done

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "shaping"


def test_the_code_of_the_page_is_that_of_the_example():
    code = (DOCS / "evidence" / "shaping.md").read_text().split("```python\n")[1].split("```")[0]
    for function in code.strip().split("\n\n\n"):
        assert function in (EXAMPLE / "rewards.py").read_text()


def test_the_command_of_the_page_plans_the_experiment(tmp_path):
    told = done("launch", EXAMPLE / "experiment.toml", "--output-dir", tmp_path, "--dry-run")
    assert "energy" in told
    assert "8 seeds" in told


@pytest.mark.slow
@pytest.mark.timeout(1800)  # four minutes on two free cores
def test_the_reward_that_rises_further_is_worse_by_the_outcome(tmp_path):
    done("launch", EXAMPLE / "experiment.toml", "--output-dir", tmp_path, "--name", "again", "--quiet",
         "--seeds", "6", "--rng-seed", "77")  # fmt: skip
    summary = " ".join((tmp_path / "again" / "summary.txt").read_text().split())
    assert "energy is worse than gain by" in summary
    assert "energy's own reward rose in 6 of 6 runs, and by the outcome it is worse than gain" in summary
