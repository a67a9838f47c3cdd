"""Runs of one state of the code are kept by one experiment and reused by the next, for commands, functions, trainers.

Two experiments use one folder at once; one of them is killed and resumed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab
from support.processes.children import environment
from support.processes.waiting import eventually
from support.repositories.users_repository import users_repository

from esper_ab.journal.events import RunReused
from esper_ab.journal.load import load
from esper_ab.journal.reading import read
from esper_ab.kept_runs.tidying import check_folder

STATES = Path(__file__).parent / "states"
PLACES = {
    "command": ("python src/lander/train.py --seed {seed} --out {out}", "--higher", "outcome"),
    "function": ("src/lander/train.py:train",),
    "Python trainer": ("trainer.py", "--higher", "outcome", "--episodes", "1"),
}
FLAGS = ("--quiet", "--devices", "cpu:0", "cpu:1", "--margin", "1", "--seeds", "6", "--references", "kept runs")
NOISY = "from time import time_ns\nGAIN = 1.0 + time_ns() % 997 / 1000\n"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    made = users_repository(tmp_path / "my lander")
    shutil.copytree(STATES / "base", made.top, dirs_exist_ok=True)
    made.commit({".gitignore": "experiments/\n"}, tag="v1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return made


def launched(repository, name, *words):
    ended = esper_ab("launch", *words, *FLAGS, "--name", name, folder=repository.top)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return " ".join(ended.stdout.split())


def history_of(repository, name):
    return load(repository.top / "experiments" / name).history


def outcomes(repository, name, group):
    return [run.evaluation.episodes[0].result.outcome for run in history_of(repository, name).of_group(group)]


@pytest.mark.parametrize(
    "place", ["function", *(pytest.param(place, marks=pytest.mark.slow) for place in ("command", "Python trainer"))]
)
def test_the_base_is_trained_once(repository, place):
    words = PLACES[place]
    first = launched(repository, "first", *words, "--code", "base=v1", "--code", "head=.")
    assert "No kept run fits this plan" in first
    assert "all records agree" in first
    repository.write({"src/lander/physics.py": "GAIN = 4.0\n"})
    second = launched(repository, "second", *words, "--code", "main=v1", "--code", "changed=.")
    assert "Reuses 5 runs of main (trained " in second
    assert "if main/0, trained again, gives the same numbers" in second
    assert "changed is better than main" in second
    reused = [run.ref.name for run in history_of(repository, "second").runs.values() if run.reused]
    assert sorted(reused) == [f"main/{seed}" for seed in range(1, 6)]
    assert outcomes(repository, "second", "main") == outcomes(repository, "first", "base")
    page = (repository.top / "experiments" / "second" / "report.html").read_text(encoding="utf-8")
    assert "5 of 6 runs of main were kept from" in page
    assert esper_ab("tidy", "--check", "experiments/second", folder=repository.top).returncode == 0


def test_runs_that_do_not_repeat_are_reused_with_their_age_beside_the_verdict(repository):
    repository.commit({"src/lander/physics.py": NOISY, "uv.lock": "1"}, tag="noisy")
    words = (*PLACES["function"], "--code", "base=noisy")
    launched(repository, "first", *words, "--code", "head=.")
    second = launched(repository, "second", *words, "--code", "head=.")
    assert "6 of 6 runs of base were kept from" in second
    assert "less than a day old when this began: a seed does not repeat to the bit" in second
    assert "all records agree" not in second
    repository.commit({"uv.lock": "2"}, tag="locked")
    third = launched(repository, "third", *PLACES["function"], "--code", "base=locked", "--code", "head=noisy")
    assert "Reuses 6 runs of head" in third
    assert not any(run.reused for run in history_of(repository, "third").of_group("base"))


@pytest.mark.slow
def test_a_file_that_no_digest_sees_is_noticed_by_the_seed_that_is_trained_again(repository):
    repository.commit({"src/lander/physics.py": "from pathlib import Path\nGAIN = float(Path(DATA).read_text())\n"})
    data = repository.top.parent / "gain.txt"
    data.write_text("1.0", encoding="utf-8")
    text = (repository.top / "src/lander/physics.py").read_text(encoding="utf-8")
    repository.commit({"src/lander/physics.py": f"DATA = {str(data)!r}\n{text}"}, tag="data")
    words = (*PLACES["function"], "--code", "base=data", "--code", "head=v1")
    launched(repository, "first", *words)
    data.write_text("2.0", encoding="utf-8")
    launched(repository, "second", *words)
    assert not any(run.reused for run in history_of(repository, "second").runs.values())
    assert round(sum(outcomes(repository, "second", "base")) / 6) == 2
    audit = (repository.top / "experiments" / "second" / "verdict.json").read_text(encoding="utf-8")
    assert "Kept runs that repeat were not reused, because base/0 gave" in audit
    launched(repository, "third", *words)
    assert sum(run.reused is not None for run in history_of(repository, "third").runs.values()) == 10
    assert outcomes(repository, "third", "base") == outcomes(repository, "second", "base")


def started(repository, name):
    command = [sys.executable, "-m", "esper_ab", "launch", *PLACES["function"], *FLAGS, "--name", name]
    words = ("--code", "base=v1", "--code", "head=.")
    return subprocess.Popen(
        [*command, *words], cwd=repository.top, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def digests_by_run(history):
    return {name: (list(run.columns.digests), run.evaluation.digest) for name, run in history.runs.items()}


def reused_so_far(journal):
    return sum(isinstance(event, RunReused) for event in read(journal)) if journal.exists() else 0


@pytest.mark.slow
def test_two_experiments_on_one_folder_killed_and_resumed_lose_and_double_nothing(repository):
    launched(repository, "first", *PLACES["function"], "--code", "base=v1", "--code", "head=v1")
    repository.write({"src/lander/physics.py": "GAIN = 4.0\n"})
    with started(repository, "killed") as killed, started(repository, "other") as other:
        journal = repository.top / "experiments" / "killed" / "events.jsonl"
        eventually(lambda: reused_so_far(journal) >= 2)
        killed.kill()
        assert other.wait(300) == 0
    assert not load(journal.parent).history.finished
    assert esper_ab("resume", "experiments/killed", "--quiet", folder=repository.top).returncode == 0
    killed_history, other_history = (history_of(repository, name) for name in ("killed", "other"))
    assert digests_by_run(killed_history) == digests_by_run(other_history)
    for history in (killed_history, other_history):
        assert sum(run.reused is not None for run in history.runs.values()) == 5
        assert "inexact_resume" not in [incident.category for incident in history.incidents]
    contents = check_folder(repository.top / "kept runs")
    assert (contents.runs, contents.damaged) == (12, ())
