"""A kind of task added from outside: tests/catalog/fourth_kind is copied into copies of both packages.

Nothing else is changed, and the new kind is planned, trained, judged and reported.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support.processes import children

ROOT = children.TESTS.parent
BANDIT_FOLDER = Path(__file__).with_name("fourth_kind")
TASK = "bandit:10"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    unfinished = shutil.ignore_patterns("*.pyc.*")  # other processes write and rename these
    for package in ("esper_ab", "workers"):
        shutil.copytree(ROOT / package, folder / package, ignore=unfinished)  # with what is compiled
        kind = f"{package}/kinds/bandit"
        assert not (folder / kind).exists()
        shutil.copytree(BANDIT_FOLDER / kind, folder / kind, ignore=unfinished)
    return folder


def run_copy(copy: Path, module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the copy in the folder of the copy."""
    return children.python("-m", module, *words, folder=copy, PYTHONPATH=str(copy))


@pytest.fixture(scope="module")
def experiment(copy: Path) -> Path:
    """Return the directory of a finished experiment."""
    result = run_copy(copy, "esper_ab.launch", "--task", TASK, "--groups", "paid,random", "--name", "bandits")
    assert result.returncode == 0, result.stderr
    assert "paid is better than random by " in result.stdout
    return copy / "experiments" / "bandits"


def test_a_plan_of_a_new_kind_uses_the_defaults_of_the_kind(copy: Path) -> None:
    result = run_copy(copy, "esper_ab.launch", "--task", TASK, "--steps", "8", "--dry-run", "--verbose")
    assert result.returncode == 0, result.stderr
    assert "2 groups x 6 seeds = 12 runs, task bandit:10" in result.stdout
    assert "each: 12 episodes x 8 steps x 8 environments" in result.stdout
    assert "note: An episode of 8 steps cannot try all 10 arms." in result.stdout


def test_the_verdict_of_a_new_kind_is_shown_in_report_and_status(copy: Path, experiment: Path) -> None:
    report = run_copy(copy, "esper_ab", "report", str(experiment), "--verbose")
    assert "BETTER: paid is better than random" in report.stdout
    assert "pulls of the best arm %" in report.stdout
    status = run_copy(copy, "esper_ab", "status", str(experiment), "--json")
    assert json.loads(status.stdout)["state"] == "finished"
    assert "pulls of the best arm %" in (experiment / "report.html").read_text()


def test_a_run_of_a_new_kind_can_be_repeated(copy: Path, experiment: Path) -> None:
    (config,) = (experiment / "runs").glob("paid-0/config.toml")
    repeated = run_copy(copy, "esper_ab.launch", str(config), "--groups", "paid,random", "--name", "again", "--dry-run")
    assert repeated.returncode == 0, repeated.stderr
    assert "esper-ab launch runs/paid-0/config.toml --groups paid,random --name again" in config.read_text()


def test_a_policy_of_a_new_kind_can_be_evaluated(copy: Path, experiment: Path) -> None:
    played = run_copy(copy, "esper_ab", "evaluate", str(experiment / "policies/paid/0.pt"))
    assert "best_arm" in played.stdout


def test_a_file_with_the_name_of_a_kind_does_not_take_its_tasks(copy: Path) -> None:
    file = copy / "bandit.py"
    file.write_text("raise SystemExit('the file was loaded')")
    result = run_copy(copy, "esper_ab.launch", "--task", TASK, "--dry-run", "--verbose")
    file.unlink()
    assert result.returncode == 0, result.stderr
    assert "task bandit:10" in result.stdout


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("--task", "bandit:1"), "give the number of arms, at least 2"),
        (("--task", TASK, "--set", "gym.rollout=resets"), "gym.rollout is a setting for Gymnasium environments, which"),
        (("--task", TASK, "--groups", "paid,heuristic"), "no reward mode or controller 'heuristic'"),
    ],
)
def test_settings_unknown_to_a_new_kind_are_refused(copy: Path, words: tuple[str, ...], refusal: str) -> None:
    result = run_copy(copy, "esper_ab.launch", *words)
    assert result.returncode == 2
    assert refusal in result.stderr


def test_the_new_kind_is_unknown_to_the_original_packages() -> None:
    code = "from esper_ab.contracts.kinds_of_task import kind_of_task; print(kind_of_task('bandit:10'))"
    assert children.python("-c", code).stdout == "gymnasium\n"
