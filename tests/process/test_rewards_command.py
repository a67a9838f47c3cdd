"""`esper-ab growth rewards`: its episodes, text and files, errors, and its use in an experiment."""

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest
from support.commands.in_process import esper_ab, stdout_of
from support.commands.progress_lines import without_progress

from esper_ab import audit_rewards, load_experiment
from esper_ab.analysis.reward_audit import findings_of
from esper_ab.campaign.reward_audit import load_reward_audit
from esper_ab.contracts.reward_audit import RewardAudit
from esper_ab.journal.load import load
from esper_ab.report.build import build_report, printed

MINE = """
import os
import numpy as np

print("a reward may print")
assert os.environ.get("ANYWHERE") or os.getpid() != {pid}, "not in the process of the command"


def gain(facts, settings):
    return np.nan_to_num(facts.acc_delta, nan=0.0)


def nothing(facts, settings):
    return np.zeros(len(facts.op))


def late(facts, settings):
    return np.full(len(facts.op), np.inf if facts.step == 5 else 0.0)
"""
TINY = ("--task", "synthetic", "--schedules", "4", "--hosts", "1", "--steps", "6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rewards")
    (folder / "mine.py").write_text(MINE.format(pid=os.getpid()))
    return folder


@pytest.fixture(scope="module")
def audited(folder: Path) -> tuple[str, RewardAudit]:
    """Audit three rewards; return the printed text and the stored reward audit."""
    rewards = ("mine.py:gain", "mine.py:nothing", "sparse")
    text = stdout_of("growth", "rewards", *rewards, *TINY, "--search", "3", "--out", "first", folder=folder)
    return text, load_reward_audit(folder / "first")


def test_a_reward_audit_scores_the_same_behaviours_with_every_reward(audited):
    _, reward_audit = audited
    answer = reward_audit.answer
    assert [behaviour.kind for behaviour in answer.behaviours].count("random") == 4
    assert [scored_reward.reward.name for scored_reward in answer.scored] == [
        "mine.py:gain",
        "mine.py:nothing",
        "sparse",
    ]
    for scored_reward in answer.scored:
        assert len(scored_reward.returns) == len(answer.behaviours)
        assert len(scored_reward.by_step) == 6
        assert scored_reward.found is not None
    gain, nothing_scores, sparse_scores = answer.scored
    assert gain.sha256 == nothing_scores.sha256 != sparse_scores.sha256 == ""
    for played_behaviour, (sparse_return,) in zip(answer.behaviours, sparse_scores.returns, strict=True):
        if played_behaviour.name == "wait":  # nothing is added, so the reward is the accuracy of the bare host
            assert sparse_return == pytest.approx(played_behaviour.best_val_accuracy / 100, abs=1e-3)
    assert not any(value for hosts in nothing_scores.returns for value in hosts)


def test_the_text_of_a_reward_audit_has_every_table(audited, folder):
    text, reward_audit = audited
    for heading in (
        "What it costs to choose by each reward",
        "What a short search for the reward finds",
        "Reference behaviours",
        "Scale, and when in the episode it pays",
        "first/reward_audit.json",
    ):
        assert heading in text
    page = (folder / "first" / "reward_audit.html").read_text()
    assert page.count("<svg") == 3
    assert reward_audit.digest in page


def test_a_reward_scale_multiplies_the_returns_in_a_reward_audit(audited, folder):
    flags = ("simplified", "sparse", *TINY, "--search", "0", "--set", "reward.sparse_reward_scale=2", "--json")
    other_audit = msgspec.convert(json.loads(stdout_of("growth", "rewards", *flags, folder=folder)), RewardAudit)
    assert other_audit.answer.behaviours == audited[1].answer.behaviours
    assert other_audit.digest != audited[1].digest
    assert (folder / "reward-audits" / f"synthetic-{other_audit.digest[:12]}" / "reward_audit.json").exists()
    returns = audited[1].answer.scored[2].returns
    doubled_returns = other_audit.answer.scored[1].returns
    assert doubled_returns == tuple(tuple(2 * value for value in hosts) for hosts in returns)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("mine.py:late",), "reward mode 'mine.py:late' is not finite at step 5"),
        (("--set", "reward.gamma=0.9", "shaped"), "needs reward.gamma = 0.995"),
        (("sparse", "--set", "growth.blueprints=[norm]"), "behaviour 'schedule'"),
        (("sparse", "--out", "mine.py"), "--out mine.py"),
        (("sparse", "--slots", "late,early"), "task synthetic has early,late; name each once, in this order"),
    ],
)
def test_an_invalid_reward_audit_is_refused_in_one_line(folder, args, words):
    result = esper_ab("growth", "rewards", *TINY, "--search", "0", *args, "--json", folder=folder)
    assert (result.returncode, len(without_progress(result.stderr))) == (2, 1), result.stdout
    assert words in json.loads(result.stdout)["error"]


def test_the_python_api_gives_the_same_reward_audit(audited, folder, monkeypatch):
    monkeypatch.chdir(folder)
    options = {"task": "synthetic", "schedules": 4, "hosts": 1, "steps": 6, "searched": 3}
    python_audit = audit_rewards("mine.py:gain", "mine.py:nothing", "sparse", output_dir="python", **options)
    assert python_audit.reward_audit == audited[1]
    pages = [(folder / name / "reward_audit.html").read_bytes() for name in ("python", "first")]
    assert pages[0] == pages[1]


# --- an experiment that includes a reward audit ---

LAUNCH = (
    "launch",
    "--task",
    "synthetic",
    "--seeds",
    "1",
    "--episodes",
    "1",
    "--steps",
    "6",
    "--n-envs",
    "2",
    "--placement",
    "sequence",
    "--devices",
    "cpu:0",
    "--quiet",
    "--launcher",
    "inline",
)


def test_an_experiment_keeps_its_reward_audit_in_the_journal(audited, folder, monkeypatch):
    monkeypatch.setenv("ANYWHERE", "yes")  # a run is in a thread of this process
    shutil.copy(folder / "first" / "reward_audit.json", folder / "gone.json")
    flags = ("--groups", "sparse,mine=mine.py:gain,shaped", "--reward-audit", "gone.json", "--name", "one")
    stdout_of(*LAUNCH, *flags, folder=folder)
    (folder / "gone.json").unlink()  # the report is a function of the journal
    experiment_dir = folder / "experiments" / "one"
    stored_audit = load(experiment_dir).history.plan.reward_audit
    assert stored_audit is not None
    assert stored_audit.digest == audited[1].digest
    assert [scored_reward.reward.name for scored_reward in stored_audit.answer.scored] == ["sparse", "mine.py:gain"]
    whole = (experiment_dir / "plan.txt").read_text()
    assert "The reward audit does not cover shaped." in " ".join(whole.split())
    first_bytes = {name: (experiment_dir / name).read_bytes() for name in ("summary.txt", "report.html")}
    rebuilt_report = build_report(experiment_dir)
    assert {name: (experiment_dir / name).read_bytes() for name in first_bytes} == first_bytes
    assert b"What the rewards pay for" in first_bytes["report.html"]
    assert b"Best of n: outcome of the favourite of each reward" in first_bytes["report.html"]
    curve = findings_of(audited[1]).rewards[2].curve
    assert f"{curve[-1]:.1f}" in printed(rebuilt_report, "whole")
    stored = json.loads((experiment_dir / "verdict.json").read_bytes())["reward_audit"]
    assert stored["digest"] == audited[1].digest
    assert [reward["reward"] for reward in stored["rewards"]] == ["sparse", "mine.py:gain"]
    assert stored["rewards"][0]["best_of"]["4"] == pytest.approx(float(curve[-1]))
    loaded_audit = load_experiment(experiment_dir).reward_audit
    assert loaded_audit is not None
    assert [reward.name for reward in loaded_audit.rewards] == ["sparse", "mine.py:gain"]
