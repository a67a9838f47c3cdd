"""The assertions of `esper_ab.testing` in sessions of pytest of their own, on a project as people have them."""

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from support.commands.progress_lines import without_progress
from support.processes.children import environment
from support.repositories.users_repository import users_repository

TRAINING = """
from .noise import draw

def train(seed, lr=0.1):
    return 100 * lr + draw(seed)

def falls_over(seed):
    if seed % 5 == 0:
        raise RuntimeError("no such robot")
    return float(seed)
"""
NOISE = """
import random

def draw(seed):
    return random.Random(seed).gauss(0, 1)
"""
TESTS = """
from esper_ab.testing import assert_learns, assert_not_worse
from ours.training import train

def test_is_as_in_the_last_commit():
    assert_not_worse(train, against="HEAD", margin=1, minutes=60)

def test_learns():
    assert_learns(train, above=3)

def test_does_not_learn():
    assert_learns(train, above=10, settings={"lr": 0.01}, seeds=6)

def test_a_lambda():
    assert_learns(lambda seed: seed, above=3)
"""
COMPARED = """
from esper_ab.testing import assert_learns, assert_not_worse
from ours import training

def test_undecided():
    assert_learns(training.train, below=6.2, seeds=6)

def test_falls_over():
    assert_learns(training.falls_over, above=3)

def tenth(seed, lr=0.1):
    return 10 * lr + training.draw(seed + 3)

def shifted(seed, lr=0.1):
    return 100 * lr + training.draw(seed + int(1000 * lr))

def test_other_settings():
    assert_not_worse(shifted, against={"lr": 0.2}, margin=1, minutes=60)

def test_another_function():
    assert_not_worse(shifted, against=training.train, margin=5, minutes=60)

def test_a_function_that_is_worse():
    assert_not_worse(tenth, against=training.train, margin=1, minutes=60)

def test_the_last_commit():
    assert_not_worse(training.train, against="HEAD", margin=1, minutes=60)

def test_the_same_files():
    assert_not_worse(training.train, against=".", margin=1, minutes=60)
"""
SETTINGS = """
[tool.pytest.ini_options]
pythonpath = ["src"]
esper_ab_directory = "all runs"
esper_ab_references = "kept"
"""
PLUGIN = [] if entry_points(group="pytest11", name="esper_ab") else ["-p", "esper_ab.pytest_plugin.plugin"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a package in src and a folder of tests."""
    repository = users_repository(tmp_path / "a project")
    repository.commit(
        {
            "src/ours/__init__.py": "",
            "src/ours/training.py": TRAINING,
            "src/ours/noise.py": NOISE,
            "tests/test_training.py": TESTS,
            "pyproject.toml": SETTINGS,
            ".gitignore": "__pycache__/\n",
        }
    )
    return repository.top


def run_pytest(project: Path, *words: str) -> str:
    """Return what pytest prints in a session of its own."""
    plain_environment = {key: value for key, value in environment().items() if not key.startswith("PYTEST_")}
    session = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", *words],
        cwd=project,
        env=plain_environment | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert without_progress(session.stderr) == []
    return session.stdout


def failure(output: str, test: str) -> list[str]:
    """Return the lines of a failed test's report."""
    lines = output.splitlines()
    begin = next(place for place, line in enumerate(lines) if re.fullmatch(rf"_+ {test} _+", line))
    end = next(place for place, line in enumerate(lines[begin + 1 :], begin + 1) if re.match(r"[_=]{4}", line))
    return [line for line in lines[begin + 1 : end] if not line.startswith("[gw")]


def test_assertions_in_two_processes_of_xdist_pass_and_fail_with_their_answers(project: Path) -> None:
    """A refactoring, not committed yet, changes nothing."""
    training = project / "src/ours/training.py"
    training.write_text(TRAINING.replace("100 * lr + draw(seed)", "draw(seed) + 100 * lr"))
    output = run_pytest(project, "-n", "2")
    assert "2 failed, 2 passed" in output, output
    assert re.search(r"test_learns: The mean outcome of train is above 3: mean [\d.]+ of \d+ runs, 90 % int", output)
    assert re.search("test_is_as_in_the_last_commit: head and base did the same in all 6 pairs", output)
    learns_not = failure(output, "test_does_not_learn")
    assert re.match("The mean outcome of train is not above 10: mean .* of 6 runs, 90 % interval .*", learns_not[0])
    assert learns_not[1].startswith("outcomes: ")
    directory = re.fullmatch("report: .*esper.ab report '(.*)'", learns_not[2])
    assert directory is not None
    assert Path(directory[1]).parent == project / "all runs" / "test-does-not-learn"
    assert (Path(directory[1]) / "summary.txt").is_file()
    assert failure(output, "test_a_lambda") == [
        "assert_learns: a lambda cannot be sent to other processes; define the function by def, with a name"
    ]
    assert "Traceback" not in output
    assert sorted(path.name for path in project.iterdir()) == [
        ".git",
        ".gitignore",
        "all runs",
        "kept",
        "pyproject.toml",
        "src",
        "tests",
    ]


@pytest.mark.slow
def test_every_kind_of_question_gets_its_answer(project: Path) -> None:
    (project / "tests/test_training.py").write_text(COMPARED)
    training = project / "src/ours/training.py"
    training.write_text(TRAINING.replace("100 * lr + draw(seed)", "100 * lr - 4 + draw(seed + 1)"))
    output = run_pytest(project)
    assert "5 failed, 2 passed" in output, output
    assert re.search("test_another_function: shifted is ", output)
    assert "test_the_same_files: The code is that of the working tree at " in output
    assert failure(output, "test_undecided")[1].startswith("All 6 seeds are used; if mean and spread stay so (SD ")
    assert "RuntimeError: no such robot (training.py, line " in "\n".join(failure(output, "test_falls_over"))
    settings = failure(output, "test_other_settings")
    assert settings[0].startswith("train is worse than lr=0.2 by ")
    assert '"train not-worse-than lr=0.2" does not hold: train against lr=0.2 is WORSE' in settings
    assert any(re.match(r"cost: 20 pairs of at most \d+ in 60 min", line) for line in settings)
    assert failure(output, "test_a_function_that_is_worse")[0].startswith("tenth is worse than train by ")
    commit_lines = failure(output, "test_the_last_commit")
    assert commit_lines[0].startswith("head is worse than base by ")
    assert any(line.startswith("head is the working tree at ") for line in commit_lines)
    assert not any("kept" in line for line in commit_lines if line.startswith("cost: "))
    training.write_text(training.read_text() + "\n# another state\n")
    output = run_pytest(project, "-k", "test_the_last_commit")
    assert "1 failed" in output, output
    (cost,) = (line for line in failure(output, "test_the_last_commit") if line.startswith("cost: "))
    kept_count = re.search(r"(\d+) kept runs used again", cost)
    assert kept_count is not None
    assert int(kept_count[1]) >= 15, "all of base but the one that is trained again to check them"
