"""Exported tables have the rows of the query, and existing files are replaced only with --force."""

import csv
import json

import duckdb
import pytest
from click.testing import CliRunner
from support.journals.ready_journals import failed_run, planted_effect, write

from esper_ab.commands import export as program
from esper_ab.contracts.errors import UsageError
from esper_ab.readers import tables
from esper_ab.readers.sql import VIEWS, query


def exported(experiment_dir, *args):
    result = CliRunner().invoke(program.command, [str(experiment_dir), *map(str, args)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_has_the_rows_of_every_table(experiment_dir, tmp_path, form):
    exported(experiment_dir, "--out", tmp_path / "out", "--format", form)
    assert {file.name for file in (tmp_path / "out").iterdir()} == {f"{table}.{form}" for table in tables.TABLES}
    for view in VIEWS:
        file = str(tmp_path / "out" / f"{view}.{form}")
        answer = query(experiment_dir, f"SELECT * FROM {view}")
        with duckdb.connect() as connection:
            relation = connection.read_csv(file, header=True) if form == "csv" else connection.read_parquet(file)
            assert tuple(relation.columns) == answer.columns
            rows = relation.fetchall()
        assert len(rows) == len(answer.rows)
        assert form == "csv" or sorted(map(repr, rows)) == sorted(map(repr, answer.rows))


def test_nested_values_are_written_as_json_in_csv_files(experiment_dir, tmp_path):
    exported(experiment_dir, "--out", tmp_path, "--table", "evaluations")
    with (tmp_path / "evaluations.csv").open() as file:
        rewards = json.loads(next(csv.DictReader(file))["rewards"])
    assert set(rewards) == {"minimal", "shaped", "simplified", "sparse"}


def test_an_export_replaces_existing_files_only_with_force(experiment_dir, tmp_path):
    (tmp_path / "pairs.csv").write_text("mine")
    with pytest.raises(UsageError, match=r"pairs.csv exists; --force replaces existing files, --out names another"):
        program.export(experiment_dir, tmp_path, "csv", tables.TABLES, force=False)
    assert [file.name for file in tmp_path.iterdir()] == ["pairs.csv"]
    assert (tmp_path / "pairs.csv").read_text() == "mine"
    exported(experiment_dir, "--out", tmp_path, "--force")
    assert (tmp_path / "pairs.csv").read_text().startswith("a,b,replicate,outcome_a")


def test_an_export_without_a_folder_goes_into_the_default_folder(tmp_path):
    experiment_dir = write(tmp_path / "run's", planted_effect())
    output = exported(experiment_dir, "--json", "--table", "runs", "--table", "runs")
    file = experiment_dir / "export" / "runs.csv"
    assert json.loads(output) == {
        "run": str(experiment_dir),
        "format": "csv",
        "files": [{"table": "runs", "file": str(file), "rows": 12, "bytes": file.stat().st_size}],
    }
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_stopped_run_exports_its_recorded_rows(tmp_path):
    experiment_dir = write(tmp_path / "run", failed_run())
    lines = exported(experiment_dir, "--out", tmp_path / "out").splitlines()
    assert any(line.startswith(f"{tmp_path / 'out' / 'incidents.csv'}: 1 row, ") for line in lines)
    assert len((tmp_path / "out" / "pairs.csv").read_text().splitlines()) == 1 + 3
