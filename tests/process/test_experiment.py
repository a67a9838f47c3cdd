"""Whole experiments with real workers: reproducible records, and the files that a run leaves."""

import json
from pathlib import Path

import pytest
from support.commands.in_process import stdout_of
from support.journals.ready_journals import records_of
from support.processes.children import python

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
    """Return the digests of all records of a group, seed by seed."""
    runs = history.of_group(group)
    return [record.digest for run in runs for record in (*records_of(run), run.evaluation)]


@pytest.fixture(scope="module")
def same_twice(tmp_path_factory) -> Path:
    """Run an experiment whose groups a and b have the same settings; each run has its own process."""
    folder = tmp_path_factory.mktemp("same")
    result = python(
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
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "run"


def test_groups_with_the_same_settings_have_identical_records(same_twice):
    history = load(same_twice).history
    assert digests(history, "a") == digests(history, "b")
    assert len(set(digests(history, "a"))) == 6  # two replicates of two episodes and an evaluation: all different


def test_every_worker_reports_the_hash_of_its_code(same_twice):
    assert {worker.sources for worker in load(same_twice).history.workers} == {sources()}


def test_groups_with_the_same_settings_get_the_verdict_identical(same_twice):
    verdict = json.loads((same_twice / "verdict.json").read_text())
    assert "IDENTICAL" in json.dumps(verdict)


def test_records_do_not_depend_on_group_names_order_or_telemetry(same_twice, tmp_path):
    """The same settings as the third of three groups, renamed, in sequential threads, without telemetry."""
    stdout_of(
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


def test_records_do_not_depend_on_the_barrier(same_twice, tmp_path):
    stdout_of("launch", *SMALL, "--output-dir", tmp_path, "--groups", "a=shaped,b=shaped", "--sync", "independent")
    history = load(tmp_path / "run").history
    assert history.plan.experiment.sync == "independent"
    same_history = load(same_twice).history
    assert same_history.plan.experiment.sync == "lockstep"
    assert digests(history, "a") == digests(same_history, "a")


def test_a_report_built_from_the_journal_alone_has_the_same_bytes(same_twice, tmp_path):
    (tmp_path / "events.jsonl").write_bytes((same_twice / "events.jsonl").read_bytes())
    stdout_of("report", str(tmp_path))
    for name in ("summary.txt", "verdict.json", "report.html"):  # whose commands name the directory
        assert (tmp_path / name).read_text().replace(str(tmp_path), str(same_twice)) == (same_twice / name).read_text()


def test_a_saved_policy_evaluates_to_the_recorded_outcomes(same_twice):
    policy = same_twice / "policies" / "a" / "0.pt"
    episodes = load(same_twice).history.runs["a/0"].evaluation.episodes
    for row in json.loads(stdout_of("evaluate", policy, "--json")):
        recorded_outcomes = [episode.result.outcome for episode in episodes if episode.actions == row["actions"]]
        assert row["held_out_accuracy"] == pytest.approx(sum(recorded_outcomes) / len(recorded_outcomes))


def test_the_sql_query_of_the_original_plan_works(same_twice):
    """The query as the dual-policy plan wrote it."""
    sql = """
        SELECT group_id, reward_mode, AVG(final_accuracy) as avg_acc
        FROM episodes
        GROUP BY group_id, reward_mode
    """
    rows = json.loads(stdout_of("query", str(same_twice), sql, "--json"))
    outcomes = json.loads(stdout_of("query", str(same_twice), sql.replace("final_accuracy", "outcome"), "--json"))
    by_group = {row["group_id"]: row["avg_acc"] for row in rows}
    assert by_group.keys() == {"a", "b"}
    assert by_group == {row["group_id"]: row["avg_acc"] for row in outcomes}
