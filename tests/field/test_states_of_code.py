"""Two states of a package in a git repository, by every way in: each group's outcomes show which code it ran.

The outcome of a run is the gain of a module, 1 in the state `base` and 3 in `head`, the bonus of a file in the working
folder, 0 and 10, and noise below 0.01.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab
from support.processes.children import python
from support.repositories.users_repository import users_repository

from esper_ab.journal.load import load

STATES = Path(__file__).parent / "states"
COMMAND = "python src/lander/train.py --seed {seed} --out {out}"
PLACES = {
    "command": (COMMAND, "--higher", "outcome"),
    "function of a file": ("src/lander/train.py:train",),
    "function of a module": ("lander.train:train",),
    "Python trainer": ("trainer.py", "--higher", "outcome", "--episodes", "1"),
}

SAY = """
import random, sys
from lander.physics import GAIN

print("outcome", GAIN + 0.01 * random.Random(sys.argv[1]).random())
"""

COMPARE = """
import sys

sys.path.insert(0, "src")
from esper_ab import compare_training
from lander.train import train

states = {"base": "v1", "head": "."}
compare_training(train, {"base": {}, "head": {}}, margin=1, seeds=2, devices=["cpu:0"], code=states, name="done")
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A project whose folder has a space in its name, and which is also importable from where it lies."""
    made = users_repository(tmp_path / "my lander")
    shutil.copytree(STATES / "base", made.top, dirs_exist_ok=True)
    made.commit({".gitignore": "experiments/\n"}, tag="v1")
    files = [path for path in (STATES / "head").rglob("*") if path.is_file()]
    made.commit({str(path.relative_to(STATES / "head")): path.read_text(encoding="utf-8") for path in files})
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(made.top / "src"))  # as an editable install does
    return made


def launched(repository, *words):
    flags = ("--quiet", "--devices", "cpu:0", "--margin", "1", "--name", "done")
    return esper_ab("launch", *words, *flags, folder=repository.top)


def outcomes(repository, name="done"):
    """Return the outcomes of each group, rounded to whole numbers."""
    history = load(repository.top / "experiments" / name).history
    by_group = {}
    for run in history.runs.values():
        by_group.setdefault(run.ref.group_id, set()).add(round(run.evaluation.episodes[0].result.outcome))
    return by_group


@pytest.mark.parametrize("place", PLACES)
def test_each_group_trains_with_its_own_state_of_the_code(repository, place):
    repository.write({"src/lander/physics.py": "GAIN = 4.0\n"})
    ended = launched(repository, *PLACES[place], "--code", "base=v1", "--code", "head=.")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert outcomes(repository) == {"base": {1}, "head": {14}}
    said = " ".join(ended.stdout.split())
    assert "Code: base is v1 (" in said
    assert "with 1 changed file. The files are sealed" in said
    assert "head is better than base" in said
    assert len(repository.git("worktree", "list").splitlines()) == 1
    assert not (repository.top / "experiments" / "done" / "code" / "trees").exists()


def test_a_command_that_runs_in_a_folder_of_its_own_imports_its_state(repository):
    repository.commit({"src/lander/say.py": SAY})
    repository.git("tag", "v2")
    repository.write({"src/lander/physics.py": "GAIN = 4.0\n"})
    words = ("python -m lander.say {seed}", "--higher", "outcome", "--code", "base=v2", "--code", "head=.")
    ended = launched(repository, *words, "--seeds", "2")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert outcomes(repository) == {"base": {3}, "head": {4}}


def test_an_experiment_is_repeated_from_its_recorded_states(repository):
    repository.write({"src/lander/physics.py": "GAIN = 4.0\n"})
    assert launched(repository, COMMAND, "--higher", "outcome", "--code", "base=v1", "--code", "now=.").returncode == 0
    repository.commit({"src/lander/physics.py": "GAIN = 5.0\n"})
    again = ("launch", "experiments/done/experiment.toml", "--quiet", "--name", "again")
    assert esper_ab(*again, folder=repository.top).returncode == 0
    assert outcomes(repository, "again") == {"base": {1}, "now": {14}}
    first, second = (load(repository.top / "experiments" / name).history.plan for name in ("done", "again"))
    assert first.digest == second.digest


def test_several_values_of_a_setting_make_a_grid_of_experiments(repository):
    repository.commit({"train.sh": 'python -m lander.train --seed "$1" --out "$2"\n'})
    command = "sh train.sh {seed} {out} {lr}"
    ended = launched(
        repository,
        command,
        "--higher",
        "outcome",
        "--code",
        "a=HEAD",
        "--code",
        "b=.",
        "--grid",
        "trainer.lr=1,2",
        "--seeds",
        "2",
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    folders = sorted(path.parent.name for path in (repository.top / "experiments" / "done").glob("*/events.jsonl"))
    assert len(folders) == 2
    assert [outcomes(repository, f"done/{folder}") for folder in folders] == [{"a": {13}, "b": {13}}] * 2


def test_folders_outside_any_repository_may_be_states(repository, tmp_path):
    plain = tmp_path / "plain folder"
    shutil.copytree(repository.top, plain, ignore=shutil.ignore_patterns(".git"))
    (plain / "src" / "lander" / "physics.py").write_text("GAIN = 6.0\n", encoding="utf-8")
    words = (COMMAND, "--higher", "outcome", "--code", "base=v1", "--code", "other=../plain folder")
    ended = launched(repository, *words, "--seeds", "2")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert outcomes(repository) == {"base": {1}, "other": {16}}


def test_one_run_is_trained_again_by_the_command_in_its_settings_file(repository):
    repository.write({"src/lander/physics.py": "GAIN = 4.0\n"})
    words = (COMMAND, "--higher", "outcome", "--code", "base=v1", "--code", "head=.", "--seeds", "2")
    assert launched(repository, *words).returncode == 0
    done = repository.top / "experiments" / "done"
    line = (done / "runs" / "head-1" / "config.toml").read_text(encoding="utf-8").partition("\n")[0]
    _, *again = shlex.split(line.partition("To train it again: ")[2])
    ended = esper_ab(*again, "--quiet", "--output-dir", str(repository.top / "experiments"), folder=done)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert outcomes(repository, "again") == {"head": {14}, "beside": {14}}


def test_compare_training_takes_the_states_of_a_function(repository):
    repository.write({"compare.py": COMPARE})
    ended = python("compare.py", folder=repository.top)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert outcomes(repository) == {"base": {1}, "head": {13}}
