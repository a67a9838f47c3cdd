"""The import contracts of pyproject.toml hold, and each kind of violation that structure.md rules out is caught."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VIOLATIONS = [
    ("workers.ppo.rollout", "workers.growth.bank.bank"),  # the trainer knows no task
    ("workers.run.session", "workers.growth.environment"),  # a run knows its environments by the seam
    ("workers.vocabulary", "esper_ab.health.examination"),  # of esper_ab, workers import its contracts only
    ("workers.rewards.sparse", "esper_ab.settings.assignments"),
    ("workers.ppo.update", "esper_ab.live.console"),
    ("workers.growth.bank.network", "workers.growth.environment"),
    ("workers.run.episode", "workers.process.link"),  # an episode knows no socket
    ("workers.growth.rules.masks", "os"),
    ("esper_ab.stats.pair", "esper_ab.verdict.follow"),  # formulas know no verdict
    ("esper_ab.launchers.inline", "torch"),
    ("esper_ab.launchers.slurm", "ray"),  # nobody but its launcher needs it
    ("esper_ab.control.rules.barrier", "time"),  # the rules of a running experiment read no clock,
    ("esper_ab.control.rules.looks", "esper_ab.journal.file"),  # touch no file
    ("esper_ab.control.rules.runs", "esper_ab.control.experiment_run"),  # and do not know who performs their commands
]


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_the_contracts_hold() -> None:
    lint = _lint(ROOT)
    assert lint.returncode == 0, lint.stdout + lint.stderr


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of a copy of both packages into which every violation is written."""
    copy = tmp_path_factory.mktemp("violations")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for package in ("esper_ab", "workers"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for importer, imported in VIOLATIONS:
        with copy.joinpath(*importer.split(".")).with_suffix(".py").open("a") as file:
            file.write(f"\nimport {imported}\n")
    lint = _lint(copy)
    assert lint.returncode == 1, lint.stdout + lint.stderr
    return lint.stdout


@pytest.mark.parametrize(("importer", "imported"), VIOLATIONS, ids=lambda name: str(name))
def test_an_injected_violation_is_caught(broken: str, importer: str, imported: str) -> None:
    assert f"{importer} -> {imported} (l." in broken
