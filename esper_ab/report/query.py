"""SQL over a run directory: DuckDB reads the journal once, then sees nothing but the views of views.sql.

After the views are made, external access is off and the configuration locked: a query reads no other file.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from esper_ab.contracts.visible import visible_line
from esper_ab.errors import UsageError
from esper_ab.journal.file import JOURNAL_NAME, read

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

VIEWS = ("runs", "episodes", "env_episodes", "evaluations", "ppo_updates", "seed_events", "ledger")
_LONGEST_LINE_BYTES = 64 << 20
_ROWS_SHOWN = 200  # in the table for the terminal; --json and --csv give all
_LOCK = """
SET python_enable_replacements = false; SET enable_external_access = false; SET lock_configuration = true
"""
_READ = """
CREATE TABLE journal AS
SELECT n, CAST(t AS TIMESTAMP) AS t, event ->> '$.kind' AS kind, event
FROM read_json($path, format = 'newline_delimited', maximum_object_size = $longest,
               columns = {n: 'BIGINT', t: 'VARCHAR', event: 'JSON'})
ORDER BY n
"""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Columns and rows of one query, as Python values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def query(run_dir: Path, sql: str) -> Answer:
    """Rows of `sql`. UsageError for what DuckDB refuses, in one line; JournalError for a damaged journal."""
    import duckdb

    with viewed(run_dir) as connection:
        lock(connection)
        try:
            result = connection.execute(sql)
            if result is None:  # nothing but white space or comments
                raise UsageError(f'SQL: nothing asked; try "SELECT * FROM runs"; views: {", ".join(VIEWS)}')
            columns = tuple(column[0] for column in result.description or ())
            rows = tuple(result.fetchall()) if columns else ()
        except duckdb.Error as error:
            raise UsageError(f"SQL: {one_line(error)}; views: {', '.join(VIEWS)}") from None
    return Answer(columns=columns, rows=rows)


def viewed(run_dir: Path, lines: int | None = None) -> DuckDBPyConnection:
    """A database in memory with the journal's first `lines` lines (None: all there are) and the views over them.

    UsageError for an empty journal, JournalError for a damaged one.
    """
    import duckdb

    connection = duckdb.connect(":memory:")
    try:
        with _intact(run_dir / JOURNAL_NAME, lines) as path:
            connection.execute(_READ, {"path": str(path), "longest": _LONGEST_LINE_BYTES})
        connection.execute(resources.files("esper_ab.report").joinpath("views.sql").read_text(encoding="utf-8"))
    except BaseException:
        connection.close()
        raise
    return connection


def lock(connection: DuckDBPyConnection) -> None:
    """From here on its queries read no file, no network and no Python variable, and change no setting."""
    connection.execute(_LOCK)


def query_json(run_dir: Path, sql: str) -> str:
    """A JSON array of objects, one per row."""
    answer = query(run_dir, sql)
    rows = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
    return json.dumps(rows, indent=2, default=str, allow_nan=False)


def query_csv(run_dir: Path, sql: str) -> str:
    """Comma-separated with a header line; empty where there is no value."""
    answer = query(run_dir, sql)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(answer.rows)
    return buffer.getvalue().removesuffix("\n")


def query_text(run_dir: Path, sql: str) -> str:
    """A plain table for the terminal; numbers to the right, floats in six digits, long results cut with a word."""
    answer = query(run_dir, sql)
    shown = answer.rows[:_ROWS_SHOWN]
    lines = [tuple(map(visible_line, answer.columns)), *(tuple(_cell(value) for value in row) for row in shown)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(answer.columns))]
    right = [all(isinstance(row[i], int | float) or row[i] is None for row in shown) for i in range(len(widths))]
    text = [
        "  ".join(
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    text.insert(1, "  ".join("-" * width for width in widths))
    count = len(answer.rows)
    cut = f", the first {_ROWS_SHOWN} shown (--json and --csv give all)" if count > _ROWS_SHOWN else ""
    return "\n".join([*text, f"({count} {'row' if count == 1 else 'rows'}{cut})"])


def _plain(value: Any) -> Any:
    """JSON has no infinity and no NaN: null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float) else visible_line(str(value))


def one_line(error: Exception) -> str:
    """Without the excerpt of the statement and without tracebacks."""
    return " ".join(re.split(r"\s+LINE \d+:|\s+Traceback", str(error))[0].split())


@contextmanager
def _intact(journal: Path, lines: int | None) -> Iterator[Path]:
    """A file of the journal's verified lines as they are now: a writer may be adding to it, and a tail may be torn."""
    reading = read(journal)
    for _ in reading:
        pass
    if reading.lines == 0:
        raise UsageError(f"{journal} holds no event yet; try again when the experiment has started")
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as copy, journal.open("rb") as source:
        for _ in range(reading.lines if lines is None else min(lines, reading.lines)):
            copy.write(source.readline())
        copy.flush()
        yield Path(copy.name)
