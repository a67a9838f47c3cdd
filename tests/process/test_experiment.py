"""Whole experiments with real workers: what records do not depend on, and what a run leaves behind."""

import json
from pathlib import Path

import pytest
from support.children import python
from support.in_process import done
from support.journals import records_of

from esper_ab.contracts.installed_code import sources
from esper_ab.journal.fold import History
from esper_ab.journal.load import load

SMALL = (
    "--task",
    "synthetic",
    "--episodes",
    "2",
    "--steps",
    "6",
    "--n-envs",
    "2",
    "--seeds",
    "2",
    "--eval-episodes",
    "2",
    "--quiet",
    "--name",
    "run",
)


def digests(history: History, group: str) -> list[str]:
    """Every record's digest of one group, replicate by replicate."""
    runs = history.of_group(group)
    return [record.digest for run in runs for record in (*records_of(run), run.evaluation)]


@pytest.fixture(scope="module")
def same_twice(tmp_path_factory) -> Path:
    """a and b have the same settings, each run in a process of its own."""
    folder = tmp_path_factory.mktemp("same")
    ended = python(
        "-m",
        "esper_ab.launch",
        *SMALL,
        "--output-dir",
        folder,
        "--groups",
        "a=shaped,b=shaped",
        "--devices",
        "cpu:0,cpu:1",
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder / "run"


def test_groups_with_the_same_settings_have_identical_records(same_twice):
    history = load(same_twice).history
    assert digests(history, "a") == digests(history, "b")
    assert len(set(digests(history, "a"))) == 6  # two replicates of two episodes and an evaluation: all different


def test_every_worker_says_which_code_it_imported(same_twice):
    assert {worker.sources for worker in load(same_twice).history.workers} == {sources()}


def test_the_verdict_on_the_same_condition_is_identical(same_twice):
    verdict = json.loads((same_twice / "verdict.json").read_text())
    assert "IDENTICAL" in json.dumps(verdict)


def test_renamed_reordered_and_in_other_company_without_telemetry_nothing_changes(same_twice, tmp_path):
    """The same settings under another name, third of three, in threads that take turns, its life not recorded."""
    done(
        "launch",
        *SMALL,
        "--output-dir",
        tmp_path,
        "--groups",
        "wait,simplified,other=shaped",
        "--no-telemetry",
        "--launcher",
        "inline",
        "--placement",
        "sequence",
        "--devices",
        "cpu:0",
    )
    history = load(tmp_path / "run").history
    assert digests(history, "other") == digests(load(same_twice).history, "a")
    assert not any(record.seed_events for run in history.runs.values() for record in records_of(run))
    assert any(record.seed_events for run in load(same_twice).history.runs.values() for record in records_of(run))


def test_a_report_is_rebuilt_from_the_journal_alone_to_the_same_bytes(same_twice, tmp_path):
    (tmp_path / "events.jsonl").write_bytes((same_twice / "events.jsonl").read_bytes())
    done("report", str(tmp_path))
    for name in ("summary.txt", "verdict.json", "report.html"):  # whose commands name the directory
        assert (tmp_path / name).read_text().replace(str(tmp_path), str(same_twice)) == (same_twice / name).read_text()


def test_saved_policies_are_evaluated_later(same_twice):
    policy = same_twice / "policies" / "a" / "0.pt"
    episodes = load(same_twice).history.runs["a/0"].evaluation.episodes
    for row in json.loads(done("evaluate", policy, "--json")):
        kept = [played.result.outcome for played in episodes if played.actions == row["actions"]]
        assert row["held_out_accuracy"] == pytest.approx(sum(kept) / len(kept))


def test_the_issue_query_works(same_twice):
    """The query of the first plan of dual-policy tests, as it is written there."""
    sql = """
        SELECT group_id, reward_mode, AVG(final_accuracy) as avg_acc
        FROM episodes
        GROUP BY group_id, reward_mode
    """
    rows = json.loads(done("query", str(same_twice), sql, "--json"))
    outcomes = json.loads(done("query", str(same_twice), sql.replace("final_accuracy", "outcome"), "--json"))
    by_group = {row["group_id"]: row["avg_acc"] for row in rows}
    assert by_group.keys() == {"a", "b"}
    assert by_group == {row["group_id"]: row["avg_acc"] for row in outcomes}
