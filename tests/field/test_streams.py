"""Streams of candidates as an agent uses them: JSON on stdin and stdout, in a repository with a space in its name."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab
from support.processes.children import environment, python
from support.processes.waiting import eventually
from support.repositories.users_repository import users_repository

from esper_ab.journal.load import load
from esper_ab.stream.entries import Begun, Decided, Setup
from esper_ab.stream.ledger import LEDGER, appending, read_ledger
from esper_ab.stream.progress import fold

TRAIN = """
import random

from evaluate import score

GAIN = 0.0


def train(seed, lr=0.1):
    own_noise = random.Random(f"{seed} {lr} {GAIN}").gauss(0, 0.1)
    return {"score": score(GAIN + lr + random.Random(seed).gauss(0, 1) + own_noise)}
"""
FILE = """
train = 'train.py:train'
higher = 'score'
seeds = 6
incumbent_seeds = 2
unchanged = ['evaluate.py']
[settings]
devices = ['cpu:0']
trainer.lr = 0.1
[launcher]
name = 'inline'
"""


@pytest.fixture
def repository(tmp_path):
    made = users_repository(tmp_path / "my project")
    files = {"train.py": TRAIN, "evaluate.py": "def score(x):\n    return x\n", "stream.toml": FILE}
    made.commit({**files, ".gitignore": "__pycache__/\n"})
    return made


def answer_of(process):
    (line,) = process.stdout.splitlines()
    return json.loads(line)


def tried(repository, proposal, *flags, folder=None):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(json.dumps(proposal)))
        process = esper_ab("stream", "try", repository.top / "agent", *flags, folder=folder or repository.top)
    return process.returncode, answer_of(process)


def opened(repository, **keys):
    text = (repository.top / "stream.toml").read_text().replace("incumbent_seeds = 2\n", "")
    if "unchanged" in keys:
        text = text.replace("unchanged = ['evaluate.py']\n", "")
    for key, value in {"incumbent_seeds": 2, **keys}.items():
        text = f"{key} = {value}\n{text}"
    (repository.top / "stream.toml").write_text(text)
    process = esper_ab("stream", "new", "agent", "stream.toml", "--json", folder=repository.top)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def checked(repository):
    process = esper_ab("stream", "status", "agent", "--check", "--json", folder=repository.top)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_settings_are_accepted_rejected_repeated_and_refused(repository, tmp_path):
    assert opened(repository)["incumbent"]["runs"] == 2
    status, answer = tried(repository, {"settings": {"lr": 0.1}})
    assert (status, answer["decision"]) == (2, "refused"), "it is the incumbent, too"
    status, answer = tried(repository, {"settings": {"lr": -2.0}, "note": "worse"}, folder=tmp_path)
    assert (status, answer["decision"], answer["candidate"]) == (12, "rejected", 1)
    assert answer["seeds"] == 4
    status, answer = tried(repository, {"settings": {"lr": 9.0}})
    assert (status, answer["decision"]) == (0, "accepted")
    assert answer["incumbent"]["settings"] == {"trainer.lr": 9.0}
    assert answer["incumbent"]["runs"] == 2
    assert Path(answer["report"]).is_file()
    status, answer = tried(repository, {"settings": {"lr": -2.0}})
    assert (status, answer["decision"], answer["repeated"]) == (12, "rejected", False), "of another incumbent"
    lines = (repository.top / "agent" / LEDGER).read_bytes()
    status, again = tried(repository, {"settings": {"lr": -2.0}})
    assert (status, again["decision"], again["repeated"]) == (12, "rejected", True)
    assert (repository.top / "agent" / LEDGER).read_bytes() == lines
    status, answer = tried(repository, {"settings": {"lr": 9.0}})
    assert (status, answer["decision"]) == (2, "refused")
    assert "it is the incumbent" in answer["error"]
    status, answer = tried(repository, {"settings": {"nonsense": 9.0}})
    assert (status, answer["decision"], answer["stream"]["candidates"]) == (4, "failed", 3)
    repository.write({"evaluate.py": "def score(x):\n    return 2 * x\n"})
    status, answer = tried(repository, {"settings": {"lr": 12.0}})
    assert (status, answer["decision"]) == (2, "refused")
    assert "it changes evaluate.py" in answer["error"]
    assert repository.git("status", "--porcelain", "--", "agent") == "", "a stream is no part of the code"
    tree = checked(repository)
    assert tree["stream"] | {"candidates": 3, "accepted": 1, "refused": 3} == tree["stream"]
    assert (tree["check"]["problems"], tree["check"]["journals"]) == ([], 5)
    path = repository.top / "agent" / LEDGER
    whole_lines = path.read_bytes().splitlines(keepends=True)
    first_candidate = next(place for place, line in enumerate(whole_lines) if b'"type":"begun"' in line)
    path.write_bytes(b"".join(whole_lines[:first_candidate]))
    status, answer = tried(repository, {"settings": {"lr": 12.0}})
    assert (status, answer["decision"]) == (5, None)
    assert "experiments/candidate-1 is there, but the ledger has 0 candidates" in answer["error"]


def begun_and_killed(repository, settings):
    """Leave what a command leaves that was killed after it wrote the ledger, and before its experiment began."""
    with appending(repository.top / "agent") as ledger:
        progress = fold(ledger.entries)
        begun = Begun(
            number=1,
            incumbent=0,
            setup=Setup(settings=settings),
            note="",
            level=progress.next_level,
            experiment="candidate-1",
            rng_seed=77,
        )
        ledger.append(begun)


def test_a_candidate_goes_on_with_its_seeds_and_its_level(repository):
    opened(repository, incumbent_seeds=0)
    begun_and_killed(repository, {"trainer.lr": 9.0})
    status, answer = tried(repository, {"settings": {"lr": 8.0}})
    assert (status, answer["decision"]) == (2, None)
    assert "candidate 1 is unfinished" in answer["error"]
    status, answer = tried(repository, {"settings": {"lr": 9.0}})
    assert (status, answer["decision"], answer["candidate"]) == (0, "accepted", 1)
    history = load(repository.top / "agent" / "experiments" / "candidate-1").history
    assert history.plan.experiment.rng_seed == 77
    entries = read_ledger(repository.top / "agent").entries
    assert [type(entry) for entry in entries[1:]] == [Begun, Decided]
    assert checked(repository)["check"]["problems"] == []


def test_an_unfinished_candidate_is_given_up_for_another_one(repository):
    opened(repository, incumbent_seeds=0)
    begun_and_killed(repository, {"trainer.lr": 9.0})
    status, answer = tried(repository, {"settings": {"lr": -9.0}}, "--give-up")
    assert (status, answer["decision"], answer["candidate"]) == (12, "rejected", 2)
    entries = [entry for entry in read_ledger(repository.top / "agent").entries if isinstance(entry, Decided)]
    assert [entry.decision for entry in entries] == ["given up", "rejected"]
    text = esper_ab("stream", "status", "agent", folder=repository.top).stdout
    assert "2 candidates compared, 0 accepted" in text


FAILING = """
import pathlib

JOURNAL = pathlib.Path("agent/experiments/candidate-1/events.jsonl")


def train(seed, lr=0.1):
    assert lr < 1 or not JOURNAL.exists(), "unlucky"
    return {"score": lr + seed / 2**31}
"""


@pytest.mark.slow
def test_a_candidate_whose_runs_fail_is_not_accepted(repository):
    """They fail in the experiment, and not in its rehearsal."""
    repository.write({"train.py": FAILING})
    opened(repository, incumbent_seeds=0, unchanged="[]")
    status, answer = tried(repository, {"settings": {"lr": 9.0}})
    assert (status, answer["decision"], answer["incumbent"]["candidate"]) == (4, "failed", 0)
    assert answer["stream"]["candidates"] == 1
    status, answer = tried(repository, {"settings": {"lr": -9.0}})
    assert (status, answer["decision"]) == (12, "rejected")
    assert checked(repository)["check"]["problems"] == []


WAITING = """
import pathlib, random, time

JOURNAL = pathlib.Path("agent/experiments/candidate-1/events.jsonl")


def train(seed, lr=0.1):
    while JOURNAL.exists() and not pathlib.Path("go").exists():  # in the runs, and not in their rehearsal
        time.sleep(0.01)
    return {"score": lr + random.Random(f"{seed} {lr}").gauss(0, 0.1)}
"""


@pytest.mark.slow
def test_a_killed_command_loses_and_doubles_nothing(repository):
    """It is killed while its first runs train; a second command is refused before that."""
    repository.write({"train.py": WAITING, "stream.toml": FILE.replace("[launcher]\nname = 'inline'\n", "")})
    opened(repository)
    words = ("-m", "esper_ab", "stream", "try", "agent", "--set")
    journal = repository.top / "agent" / "experiments" / "candidate-1" / "events.jsonl"
    with subprocess.Popen([sys.executable, *words, "lr=9"], cwd=repository.top, env=environment()) as process:
        eventually(lambda: journal.exists() or process.poll() is not None)
        refused = python(*words, "lr=8", folder=repository.top)
        process.kill()
    (repository.top / "go").touch()
    assert refused.returncode == 2
    assert "is trying a candidate" in refused.stderr
    ended = python(*words, "lr=9", folder=repository.top)
    assert ended.returncode == 0, ended.stderr
    assert answer_of(ended)["seeds"] == 6
    entries = read_ledger(repository.top / "agent").entries
    assert [type(entry) for entry in entries[2:4]] == [Begun, Decided]
    assert checked(repository)["check"]["problems"] == []


PAGE = Path(__file__).resolve().parents[2] / "docs" / "gate.md"
LOOP = """
for gain in -1 5 6 7; do
    sed "s/^GAIN = .*/GAIN = $gain/" train.py > new.py && mv new.py train.py
    mkdir -p "parts of $gain" && touch "parts of $gain/note.txt"
    git add train.py
    if [ $gain = 6 ]; then echo '' >> evaluate.py; fi
    if [ $gain = 7 ]; then git checkout --quiet HEAD evaluate.py; fi
    {
        BODY
    } 2>> ../log.txt | grep '^{'
done
"""


@pytest.mark.slow
def test_the_shell_loop_of_the_page_keeps_what_is_better_and_takes_back_only_what_was_judged(repository):
    """The candidate with a gain of 6 is refused, and its files are still there with that of 7."""
    (repository.top / "stream.toml").write_text(FILE.replace("[launcher]\nname = 'inline'\n", ""))
    opened(repository, code="'.'")
    repository.commit({})
    body = PAGE.read_text(encoding="utf-8").partition("So a loop needs")[2].partition("```sh\n")[2].partition("```")[0]
    author = {f"GIT_{role}_{fact}": "agent" for role in ("AUTHOR", "COMMITTER") for fact in ("NAME", "EMAIL")}
    process = subprocess.run(
        ["sh", "-c", LOOP.replace("BODY", body)],
        cwd=repository.top,
        env=os.environ | author,
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    assert [answer["decision"] for answer in answers] == ["rejected", "accepted", "refused", "accepted"]
    assert repository.git("log", "--format=%s").splitlines() == ["better", "better", "a state", "a state"]
    assert (repository.top / "train.py").read_text() == TRAIN.replace("GAIN = 0.0", "GAIN = 7")
    assert sorted(path.name for path in repository.top.glob("parts *")) == [f"parts of {gain}" for gain in (5, 6, 7)]
    assert repository.git("status", "--porcelain") == ""
    assert checked(repository)["check"]["problems"] == []
