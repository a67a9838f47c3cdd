"""`esper-ab gate` in a git project: a refactoring, a bug and an improvement, each as the working tree of a branch."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab
from support.processes.waiting import eventually
from support.repositories.users_repository import users_repository

from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME

# In the style of single-file libraries: arguments, a seed, numbers on stdout.
TRAIN = """\
import argparse
import random

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--rate", type=float, default=1.0)
arguments = parser.parse_args()
draw = random.Random(arguments.seed)
GAIN = 50.0
for step in range(10):
    luck = draw.gauss(1.0, 0.1)
    print(f"global_step={step}, episodic_return={GAIN * luck * arguments.rate * step / 9}")
"""
FUNCTION = """\
import random


def train(seed):
    luck = random.Random(seed).gauss(1.0, 0.1)
    return {"score": 50.0 * luck, "loss": luck + luck}
"""
GATE = """\
train = "python train.py --seed {seed} --rate {rate}"
higher = "stdout:episodic_return"
margin = 10
minutes = 10
[settings]
devices = ["cpu:0"]
trainer.rate = 1.0
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project on a branch, in a folder whose name has a space."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    made = users_repository(tmp_path / "my project")
    made.commit({"train.py": TRAIN, "gate.toml": GATE})
    made.git("checkout", "--quiet", "-b", "change")
    return made


def change(project, old, new):
    assert old in TRAIN
    project.write({"train.py": TRAIN.replace(old, new)})


def gate(project, *words):
    return esper_ab("gate", *words, folder=project.top)


def directories(project):
    return sorted((project.top / "experiments").glob("gate-*"))


def answer(project):
    (directory,) = directories(project)
    return json.loads((directory / "gate.json").read_bytes())


def test_a_refactoring_is_identical_after_a_few_pairs(project):
    change(project, "GAIN = 50.0", "GAIN = 100.0 / 2.0  # the same number")
    words = ("--comment", "comment.md", "--references", "kept runs")
    begin_s = time.monotonic()
    ended = gate(project, *words)
    wall_s = time.monotonic() - begin_s
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "head and base did the same in all 6 pairs" in ended.stdout
    assert "look after 6 of at most" in ended.stdout
    assert (answer(project)["verdict"], answer(project)["pairs"]) == ("IDENTICAL", 6)
    look_minutes = float(re.search(r"pairs, ([0-9.]+) of 10 min", ended.stdout).group(1))
    assert 60.0 * (look_minutes - 0.05) <= answer(project)["seconds"] <= wall_s + 0.05  # one clock, and all of the time
    comment = (project.top / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith("### IDENTICAL: the gate is passed\n")
    assert len(comment.splitlines()) <= 15

    repeated = gate(project, *words)  # none of which is part of head
    assert repeated.returncode == 0, repeated.stderr
    assert len(directories(project)) == 1
    assert "has the answer" in repeated.stdout
    assert (project.top / "comment.md").read_text(encoding="utf-8") == comment

    assert project.git("status", "--porcelain").splitlines() == [" M train.py", "?? comment.md"]
    change(project, "GAIN = 50.0", "GAIN = 25.0 * 2.0")
    ended = gate(project, *words)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Reuses 5 runs of base (trained " in ended.stdout
    comment = (project.top / "comment.md").read_text(encoding="utf-8")
    assert "| cost | 7 runs and 5 kept ones (less than a day old), " in comment
    assert len(directories(project)) == 2


def test_a_refactoring_keeps_its_guardrails(project):
    project.git("checkout", "--quiet", "main")
    question = "train = 'train.py:train'\nhigher = 'score'\nguardrails = ['lower loss margin 0.1']\n"
    project.commit({"train.py": FUNCTION, "gate.toml": f"{question}margin = 10\nminutes = 10\n"})
    project.write({"train.py": FUNCTION.replace("luck + luck", "2.0 * luck")})
    ended = gate(project, "--comment", "comment.md")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "It ends after 6 seeds if all records of the groups agree." in ended.stdout
    assert "so the change of code had no effect on these runs; 1 guardrail holds: loss." in ended.stdout
    assert (answer(project)["verdict"], answer(project)["pairs"], answer(project)["passed"]) == ("IDENTICAL", 6, True)
    assert "| claim | head not-worse-than base with guardrails |" in (project.top / "comment.md").read_text()


def test_a_bug_is_worse_and_a_gate_that_was_cut_off_goes_on(project):
    change(project, "GAIN = 50.0", "GAIN = 25.0")
    ended = gate(project)
    assert ended.returncode == 12, ended.stdout + ended.stderr
    assert '"head not-worse-than base" does not hold: head against base is WORSE' in ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith("look after")]
    assert len(lines) == 1
    assert re.fullmatch(r"look after 20 of at most \d+ pairs, .* min: decided head - base", lines[0])
    whole_answer = answer(project)
    assert whole_answer["pairs"] == 20

    (directory,) = directories(project)
    journal = directory / JOURNAL_NAME
    whole_journal = journal.read_bytes()
    journal.write_bytes(b"".join(whole_journal.splitlines(keepends=True)[:60]))  # as after a power cut
    (directory / "gate.json").unlink()
    planned = gate(project, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "Without --dry-run, the command goes on with it" in planned.stdout
    begun = json.loads(gate(project, "--dry-run", "--json").stdout)["begun"]
    assert (begun["state"], begun["directory"]) == ("interrupted", f"experiments/{directory.name}")
    assert f"Done: {begun['pairs']} of at most {begun['most_pairs']} pairs, in " in planned.stdout
    assert 0 < begun["pairs"] < 20
    continued = gate(project, "--json")
    assert continued.returncode == 12, continued.stderr
    assert len(directories(project)) == 1
    assert len(load(directory).history.continued) == 1
    document = json.loads(continued.stdout)
    assert {key: document[key] for key in ("verdict", "estimate", "low", "high", "pairs")} == {
        key: whole_answer[key] for key in ("verdict", "estimate", "low", "high", "pairs")
    }

    change(project, "GAIN = 50.0", "GAIN = 24.0")
    planned = gate(project, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert f"by the runs of base in 20 pairs of {directory.name}" in planned.stdout
    assert len(directories(project)) == 1


@pytest.mark.slow
def test_an_improvement_is_better_than_a_named_base(project):
    project.write({"gate.toml": GATE.replace("minutes", 'claim = "better"\nbase = "main"\nminutes')})
    change(project, "GAIN = 50.0", "GAIN = 75.0")
    ended = gate(project)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "head is better than base by" in ended.stdout
    assert "base is main (" in ended.stdout
    assert (answer(project)["pairs"], answer(project)["most_pairs"]) == (14, 60)


def test_what_cannot_be_asked_is_refused_in_one_line(project):
    assert "base and head have the same files" in gate(project).stderr
    change(project, "GAIN = 50.0", "GAIN = 51.0")
    for words, message in (
        (
            ("--minutes", "0.01"),
            r"minutes = 0.01 pays for 0 pairs, and this claim needs 15: 15 pairs take about \d+ min",
        ),
        (("--base", "nosuch"), "no commit, branch or tag 'nosuch'"),
        (("other.toml",), "init --gate"),
    ):
        refused = gate(project, *words)
        assert refused.returncode == 2
        assert re.search(message, refused.stderr), refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    project.write({"gate.toml": GATE.replace("devices = ", "seeds = 3\ndevices = ")})
    assert "seeds cannot be set here" in gate(project).stderr
    assert directories(project) == []


@pytest.mark.slow
def test_signals_and_the_end_of_the_minutes_lose_nothing(project):
    change(project, "GAIN = 50.0", "GAIN = 46.0")
    project.write({"gate.toml": GATE + "\n"})
    words = [sys.executable, "-m", "esper_ab", "gate", "--minutes"]
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen([*words, "5"], cwd=project.top, text=True, stderr=subprocess.PIPE)
        runs_before = finished_runs(project)
        eventually(lambda before=runs_before: finished_runs(project) > before + 2, 120.0)
        process.send_signal(number)
        _, complaint = process.communicate(timeout=60)
        assert len(directories(project)) == 1
    assert process.returncode == 130
    assert "to go on: " in complaint
    assert "gate --minutes 5" in complaint
    ended = gate(project, "--minutes", "0.2")
    assert ended.returncode == 12
    assert answer(project)["verdict"] in ("INCONCLUSIVE", "NO INFERENCE")
    assert not answer(project)["finished"]
    ended = gate(project, "--minutes", "5")
    assert answer(project)["finished"], ended.stdout + ended.stderr
    assert len(directories(project)) == 1


def finished_runs(project):
    for directory in directories(project):
        if (directory / JOURNAL_NAME).exists():
            return (directory / JOURNAL_NAME).read_bytes().count(b'"kind":"evaluation"')
    return 0
