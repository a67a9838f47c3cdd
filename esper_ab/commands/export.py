"""`esper-ab export`: write the tables of an experiment directory as CSV or Parquet files."""

from __future__ import annotations

import errno
import json as json_module
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import experiment_argument
from esper_ab.commands._parameters import json_flag, switch, valued
from esper_ab.contracts.errors import UsageError, refused
from esper_ab.contracts.files_below import folder_below, make_folder
from esper_ab.contracts.wording import counted
from esper_ab.journal.load import load
from esper_ab.readers.conclusions import add_conclusions
from esper_ab.readers.sql import viewed
from esper_ab.readers.tables import TABLES, table_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Format = Literal["csv", "parquet"]
_NESTED = {"rewards"}  # a map, which CSV cannot hold: written as JSON
_FOLDER = "export"


@command_with(
    "esper-ab export experiments/EXPERIMENT",
    "esper-ab export experiments/EXPERIMENT --format parquet --table episodes --table pairs --out tables",
)
@experiment_argument
@valued(
    "--out",
    "DIR",
    "Folder for the files; created if missing. [default: EXPERIMENT/export]",
    type=click.Path(path_type=Path, file_okay=False),
)
@valued(
    "--format",
    None,
    "CSV with a header line, or Parquet with typed columns.",
    "form",
    type=click.Choice(("csv", "parquet")),
    default="csv",
)
@valued(
    "--table",
    "TABLE",
    f"Write only this table: {', '.join(TABLES)}. Repeatable. [default: all]",
    "tables",
    multiple=True,
    type=click.Choice(TABLES),
)
@switch("--force", "Replace existing files.")
@json_flag
def command(
    experiment_dir: Path, out: Path | None, form: Format, tables: tuple[str, ...], force: bool, json: bool
) -> None:
    """Write the tables of EXPERIMENT as CSV or Parquet files.

    There is one file per table: the views of `query`, the comparisons and their pairs. While EXPERIMENT is running,
    the files hold what has been recorded so far.
    """
    chosen_tables = tuple(dict.fromkeys(tables)) or TABLES
    written_files = export(experiment_dir, out or experiment_dir / _FOLDER, form, chosen_tables, force=force)
    if json:
        click.echo(json_module.dumps({"run": str(experiment_dir), "format": form, "files": written_files}, indent=2))
        return
    for table in written_files:
        click.echo(f"{table['file']}: {counted(table['rows'], 'row')}, {table['bytes'] / 1e3:.1f} kB")


def export(
    experiment_dir: Path, folder: Path, form: Format, tables: Sequence[str], *, force: bool
) -> list[dict[str, Any]]:
    """Write one file per table into `folder`; return the table, file, rows and bytes of each.

    No file is replaced before every file has been written in full. Raises UsageError if a file exists and `force` is
    false, if `folder` is not writable, or if there is no journal.
    """
    from esper_ab.analysis.analyse import analyse  # imports scipy, which --help does not need

    files = {table: folder / f"{table}.{form}" for table in tables}
    loaded_journal = load(experiment_dir)
    existing_files = [str(file) for file in files.values() if file.exists()]
    if existing_files and not force:
        rest_words = f", and {len(existing_files) - 1} more" if len(existing_files) > 1 else ""
        raise UsageError(
            f"{existing_files[0]} exists{rest_words}; --force replaces existing files, --out names another folder"
        )
    comparisons = analyse(loaded_journal.history).comparisons
    with viewed(experiment_dir, loaded_journal.lines, loaded_journal.history.design.measures) as connection:
        add_conclusions(connection, comparisons)
        try:
            if folder == experiment_dir / _FOLDER:
                folder_below(experiment_dir, _FOLDER)
            else:
                make_folder(folder)
            with tempfile.TemporaryDirectory(dir=folder, prefix=".export.") as draft:
                drafts = {table: Path(draft, f".{file.name}") for table, file in files.items()}  # `tidy` removes these
                rows = {table: _draft(connection, table, drafts[table], form) for table in files}
                for table, file in files.items():
                    drafts[table].replace(file)
        except OSError as error:
            error.filename = str(folder)
            reason = f"{folder} cannot be written: {error.strerror}; name another folder with --out"
            raise refused(error, reason) from None
    return [
        {"table": table, "file": str(file), "rows": rows[table], "bytes": file.stat().st_size}
        for table, file in files.items()
    ]


def _draft(connection: DuckDBPyConnection, table: str, file: Path, form: Format) -> int:
    """Write one table to `file` and return its number of rows; OSError if DuckDB cannot write the file."""
    import duckdb

    relation = connection.sql(table_sql(table))
    try:
        if form == "parquet":
            relation.write_parquet(str(file))
        else:
            relation.project(", ".join(map(_csv_column, relation.columns))).write_csv(str(file), header=True)
    except duckdb.IOException as error:
        full = "No space left" in str(error) or "quota" in str(error)
        number = errno.ENOSPC if full else errno.EIO
        raise OSError(number, " ".join(str(error).split())) from None
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def _csv_column(column: str) -> str:
    """Return the SQL of a column in a CSV file."""
    if column in _NESTED:
        return f"to_json({column}) AS {column}"
    return column
