"""SQL over an experiment directory: every view, every column, and limits on queries."""

import csv
import json
import re
from pathlib import Path
from statistics import fmean

import pytest
from support.journals.ready_journals import (
    failed_run,
    planted_effect,
    three_groups,
    with_last_run_given_up,
    without_evaluations,
    write,
)
from support.journals.synthetic import Synthetic

from esper_ab.api.loaded import load_experiment
from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.events import EpisodeRecorded, Incident, RunEvaluated
from esper_ab.journal.fold import fold
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.outcomes import outcomes
from esper_ab.readers import sql as sql_module
from esper_ab.readers.query_result import QueryResult, query_csv, query_json, query_text
from esper_ab.readers.sql import VIEWS, query, viewed
from workers.kinds.growth.measures import MEASURES

DOCS = Path(__file__).resolve().parents[4] / "docs" / "sql.md"


@pytest.mark.parametrize(
    ("sql", "value_of_run"),
    [
        ("SELECT group_id, reward_mode, AVG(outcome) FROM env_episodes GROUP BY ALL", lambda run: run.training_area),
        (
            "SELECT group_id, reward_mode, AVG(rewards['sparse']) FROM evaluations WHERE actions = "
            "'sampled' GROUP BY ALL",
            lambda run: run.rewards["sparse"],
        ),
    ],
)
def test_group_means_in_sql_equal_those_of_the_fold(experiment_dir, sql, value_of_run):
    runs = outcomes(fold(three_groups())).values()
    modes = {"shaped": "shaped", "simplified": "simplified", "wait": "shaped"}
    assert {(group, mode): mean for group, mode, mean in query(experiment_dir, sql).rows} == pytest.approx(
        {
            (group, mode): fmean(value_of_run(run) for run in runs if run.run.group_id == group)
            for group, mode in modes.items()
        }
    )


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "incidents"])
def test_every_column_of_a_view_has_a_value_in_some_row(experiment_dir, view):
    answer = query(experiment_dir, f"SELECT * FROM {view}")
    assert answer.rows
    for index, column in enumerate(answer.columns):
        assert any(row[index] is not None for row in answer.rows), column


def test_incidents_of_a_failed_run_are_rows_of_a_view(experiment_dir, tmp_path):
    assert query(experiment_dir, "SELECT * FROM incidents").rows == ()
    failed_dir = write(tmp_path / "failed", failed_run())
    answer = query(failed_dir, "SELECT category, run, episode, detail FROM incidents")
    assert answer.rows == (("worker_death", "simplified/3", 1, "exit code -9"),)


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_of_a_view_is_documented(experiment_dir, view):
    section = _section(view)
    common_section = _section("Columns of several views")
    columns = re.findall(r"`(\w+)`", section.split("Columns: ")[1].split("\n\n")[0])
    assert tuple(columns) == query(experiment_dir, f"SELECT * FROM {view}").columns
    assert set(columns) <= set(re.findall(r"^\| `(\w+)` \|", section + common_section, flags=re.MULTILINE))


def _section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", DOCS.read_text(), flags=re.DOTALL | re.MULTILINE).group(1)


def spoilt(events, kind):
    """A journal whose last run is not evaluated, lacks its last episode, or was given up."""
    index = max(n for n, event in enumerate(events) if isinstance(event, RunEvaluated))
    run = events[index].record.run.name
    match kind:
        case "not evaluated":
            return events[:index]
        case "cut":
            return events[: max(n for n, event in enumerate(events) if isinstance(event, EpisodeRecorded))]
        case "evaluated and cancelled":
            return [*events[: index + 1], Incident(category="cancelled", run_name=run, episode=None, detail="")]
        case "dropped_pair" | "cancelled":
            return with_last_run_given_up(events, kind)
    return events


@pytest.mark.parametrize("outcome", ["evaluation", "last-tenth", "last-third", "curve-mean"])
@pytest.mark.parametrize(
    "kind", ["whole", "not evaluated", "cut", "dropped_pair", "cancelled", "evaluated and cancelled"]
)
def test_every_run_has_the_same_numbers_in_sql_as_in_the_fold(tmp_path, outcome, kind):
    events = spoilt(Synthetic(outcome_over=outcome, episodes=11, extended_by=2).events(), kind)
    history = fold(events)
    sql = "SELECT run, outcome, evaluated, greedy, recorded_episodes FROM runs"
    rows = {row[0]: row[1:] for row in query(write(tmp_path / "run", events), sql).rows}
    assert len(rows) == 2 * (6 + 2)
    for name, outcome_of_run in outcomes(history).items():
        expected_row = (
            outcome_of_run.outcome,
            outcome_of_run.evaluated,
            outcome_of_run.greedy,
            len(history.runs[name].episodes),
        )
        assert rows[name] == tuple(None if value is None else pytest.approx(value) for value in expected_row)
    assert any(row[0] is None for row in rows.values()) == (kind != "whole")


def test_seed_module_events_are_rows_of_a_view(experiment_dir):
    answer = query(experiment_dir, "SELECT DISTINCT event, contribution IS NULL FROM seed_events")
    assert set(answer.rows) == {("germinated", True), ("advanced", True), ("pruned", False), ("fossilized", False)}


def test_runs_without_an_evaluation_have_no_row_in_evaluations(tmp_path):
    experiment_dir = write(tmp_path / "run", without_evaluations(planted_effect()))
    assert query(experiment_dir, "SELECT count(*) FROM evaluations").rows == ((0,),)
    assert query(experiment_dir, "SELECT count(outcome) FROM runs").rows == ((0,),)


def test_a_torn_tail_does_not_break_queries(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect()[:60])
    journal = experiment_dir / JOURNAL_NAME
    count = query(experiment_dir, "SELECT count(*) FROM journal").rows
    with journal.open("ab") as file:
        file.write(b'{"n":61,"prev":"12')
    assert query(experiment_dir, "SELECT count(*) FROM journal").rows == count == ((60,),)
    journal.write_bytes(journal.read_bytes().replace(b'"env":1', b'"env":2', 1))
    with pytest.raises(JournalError):
        query(experiment_dir, "SELECT 1")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", "Table with name nowhere does not exist"),
        ("SELECT * FROM '/etc/hosts'", "does not exist"),
        ("-- only a comment", "expected one SELECT"),
        ("SET enable_external_access = true", "expected one SELECT"),
    ],
)
def test_an_invalid_query_is_refused_in_one_line_with_the_views(experiment_dir, sql, message):
    with pytest.raises(UsageError) as caught:
        query(experiment_dir, sql)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "tables: runs, episodes" in str(caught.value)
    assert caught.value.exit_code == 2


COPY = "COPY (SELECT 1) TO '{}' (FORMAT csv, USE_TMP_FILE false)"


@pytest.mark.parametrize(
    "sql",
    [
        COPY,
        f"EXPLAIN ANALYZE {COPY}",
        f"SELECT 1; {COPY}",
        "ATTACH '{}' AS other",
        "EXPORT DATABASE '{}'",
        "SELECT * FROM read_text('{}.torn-1')",
    ],
)
def test_a_query_can_neither_write_files_nor_read_other_files(tmp_path, sql):
    experiment_dir = write(tmp_path / "run", planted_effect()[:60])
    path = experiment_dir / JOURNAL_NAME
    data = path.read_bytes()
    path.with_name(f"{JOURNAL_NAME}.torn-1").write_bytes(b"secret")
    with pytest.raises(UsageError, match=r"expected one SELECT|disabled by configuration"):
        query(experiment_dir, sql.format(path))
    assert path.read_bytes() == data
    assert sorted(file.name for file in experiment_dir.iterdir()) == [JOURNAL_NAME, f"{JOURNAL_NAME}.torn-1"]


@pytest.mark.parametrize("name", ["ru[n]", "r*n?", "it's", "{a,b}"])
def test_an_experiment_directory_may_have_any_name(tmp_path, name):
    (tmp_path / "run").mkdir()
    experiment_dir = write(tmp_path / name, planted_effect()[:60])
    record_count = sum(isinstance(event, EpisodeRecorded) for event in planted_effect()[:60])
    assert query(experiment_dir, "SELECT count(*) FROM episodes").rows == ((record_count,),)


def test_a_view_ignores_later_writes_to_the_journal(tmp_path):
    events = planted_effect()
    experiment_dir = write(tmp_path / "run", events)
    path = experiment_dir / JOURNAL_NAME
    with viewed(experiment_dir, 60, MEASURES) as connection:
        path.write_bytes(path.read_bytes()[:-200])  # as a writer has it in between
        counted = connection.execute("SELECT count(*), max(n) FROM journal").fetchall()
    assert counted == [(60, 59)]


def test_long_query_results_are_truncated_only_on_the_terminal(experiment_dir):
    answer = query(experiment_dir, "SELECT env FROM env_episodes")
    assert len(query_text(answer).splitlines()) == 203
    assert "576 rows; the first 200 are shown" in query_text(answer)
    assert len(json.loads(query_json(answer))) == 576


REPEATED_NAMES = 'SELECT 1 AS run, 2 AS RUN, 3 AS run_1, 4 AS run, 5 AS """"'


def test_columns_with_the_same_name_are_numbered(experiment_dir):
    names = ("run", "RUN_1", "run_1_1", "run_2", '"')
    answer = query(experiment_dir, REPEATED_NAMES)
    assert answer == QueryResult(columns=names, rows=((1, 2, 3, 4, 5),))
    assert json.loads(query_json(answer)) == [dict(zip(names, range(1, 6), strict=True))]
    assert next(csv.reader(query_csv(answer).splitlines())) == list(names)
    assert tuple(query_text(answer).splitlines()[0].split()) == names
    relation = load_experiment(experiment_dir).query(REPEATED_NAMES)
    assert tuple(relation.columns) == tuple(relation.df().columns) == tuple(relation.pl().columns) == names
    assert relation.to_arrow_table().to_pylist() == [dict(zip(names, range(1, 6), strict=True))]


def test_csv_files_and_tables_show_nested_values_as_json(experiment_dir):
    sql = (
        "SELECT true AS yes, [1.5, 'nan'::DOUBLE] AS some, {'a': NULL, 'b': ['x']} AS one, MAP {'k': 2.5} AS map, "
        "NULL AS nothing"
    )
    header = ["yes", "some", "one", "map", "nothing"]
    expected = ["true", "[1.5, null]", '{"a": null, "b": ["x"]}', '{"k": 2.5}']
    answer = query(experiment_dir, sql)
    assert list(csv.reader(query_csv(answer).splitlines())) == [header, [*expected, ""]]
    assert re.split("  +", query_text(answer).splitlines()[2]) == [*expected, "NULL"]
    values = (True, [1.5, None], {"a": None, "b": ["x"]}, {"k": 2.5}, None)
    assert json.loads(query_json(answer)) == [dict(zip(header, values, strict=True))]
    assert json.loads(query_json(query(experiment_dir, "SELECT 'inf'::DOUBLE AS x"))) == [{"x": None}]


def test_a_query_cannot_read_the_folder_of_duckdbs_temporary_files(tmp_path, monkeypatch):
    experiment_dir = write(tmp_path / "run", planted_effect())
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "secret.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="disabled by configuration"):
        query(experiment_dir, "SELECT * FROM read_csv('.tmp/secret.csv')")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tmp", "run"]


def test_an_endless_query_times_out(experiment_dir):
    endless_query = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range % 7 = b.range % 5"
    with pytest.raises(UsageError, match=r"^SQL: no answer within 0\.5 s; query less, or allow more time$"):
        query(experiment_dir, endless_query, limit_s=0.5)
    assert query(experiment_dir, "SELECT 1").rows == ((1,),)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT unnest(range(3000000000))", "more than 4 GiB of memory needed"),
        ("SELECT * FROM range(2000)", "more than 1,000 rows"),
        ("SELECT repeat('x', 100) FROM range(900)", "more than 0 MiB of text in the rows"),
    ],
)
def test_a_query_that_exceeds_a_limit_is_refused(experiment_dir, monkeypatch, sql, message):
    """The SQL may be somebody else's. The limits on rows and text are lowered here."""
    monkeypatch.setattr(sql_module, "MOST_ROWS", 1_000)
    monkeypatch.setattr(sql_module, "MOST_TEXT_BYTES", 10_000)
    with pytest.raises(UsageError, match=f"^SQL: {message}; query less, for example with LIMIT"):
        query(experiment_dir, sql)
    assert query(experiment_dir, "SELECT 1").rows == ((1,),)
