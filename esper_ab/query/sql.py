"""SQL over an experiment directory: the views of views.sql over a verified journal, and nothing else.

DuckDB reads episode records from the file when a query needs them, and only the columns of the view, because a journal
may exceed memory. Everything else is a table. After the views are made, external access is disabled except for that one
file, and the configuration is locked. Nothing is spilled to the disk: a query has the memory of this machine.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from importlib import resources
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.contracts.visible import visible_line
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.line import is_episode
from esper_ab.journal.load import load
from esper_ab.stats.text import counted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LIMIT_S = 300.0  # for the answer to a query
VIEWS = ("runs", "episodes", "env_episodes", "evaluations", "ppo_updates", "seed_events", "incidents")
_VIEWS_WORDS = f"views: {', '.join(VIEWS)}"
# Statements that cannot write to the one file that is open to queries; COPY could, as could prepared or explained
# statements. The database is in memory, its settings are locked.
_HARMLESS = ("SELECT", "CREATE", "INSERT", "UPDATE", "DELETE", "DROP", "SET", "VARIABLE_SET")
_LONGEST_LINE_BYTES = 16 << 20  # longest episode line; DuckDB keeps two such buffers per core
_GLOB = "*?["  # characters that DuckDB treats as a file pattern
_ROWS_SHOWN = 200  # in the table for the terminal; --json and --csv give all
_LOCK = """
SET python_enable_replacements = false; SET enable_external_access = false; SET lock_configuration = true
"""
_OTHERS = """
CREATE TABLE other_lines AS
SELECT n, CAST(t AS TIMESTAMP) AS t, event ->> '$.kind' AS kind, event
FROM read_json($path, format = 'newline_delimited', maximum_object_size = $longest,
               columns = {n: 'BIGINT', t: 'VARCHAR', event: 'JSON'})
ORDER BY n
"""
# Lines appended later are excluded, and a half-written line is not yet JSON.
_EPISODES = """
CREATE MACRO episode_lines(record_type) AS TABLE
SELECT n, CAST(t AS TIMESTAMP) AS t, event.record AS record
FROM read_json({path}, format = 'newline_delimited', maximum_object_size = {longest}, ignore_errors = true,
               columns = {{n: 'BIGINT', t: 'VARCHAR', event: 'STRUCT(kind VARCHAR, record ' || record_type || ')'}})
WHERE n < {lines} AND event.kind = 'episode'
"""


class QueryResult(msgspec.Struct, frozen=True, kw_only=True):
    """Columns, of distinct names, and rows of one query, as Python values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def query(experiment_dir: Path, sql: str, limit_s: float = LIMIT_S) -> QueryResult:
    """Run `sql` and return its rows. UsageError in one line if DuckDB refuses; JournalError for a damaged journal.

    A query that takes longer than `limit_s` is interrupted: UsageError.
    """
    import duckdb

    loaded = load(experiment_dir)
    made = viewed(experiment_dir, loaded.lines, loaded.history.design.measures.names)
    with made as connection, _interrupted(connection, limit_s):
        lock(connection)
        try:
            statements = connection.extract_statements(sql)
            for statement in statements:
                kind = statement.type.name
                if kind not in _HARMLESS:
                    raise UsageError(f"SQL: {kind} is disabled by configuration: a query reads; {_VIEWS_WORDS}")
            if sum(statement.type.name == "SELECT" for statement in statements) > 1:
                raise UsageError(f"SQL: one SELECT at a time, not {len(statements)} statements; {_VIEWS_WORDS}")
            result = connection.execute(sql)
            if result is None:  # only white space or comments
                raise UsageError(f'SQL: nothing asked; try "SELECT * FROM runs"; {_VIEWS_WORDS}')
            columns = distinct([column[0] for column in result.description or ()])
            rows = tuple(result.fetchall()) if columns else ()
        except duckdb.InterruptException:
            raise UsageError(f"SQL: no answer within {limit_s:g} s; ask for less, or give it longer") from None
        except duckdb.Error as error:
            raise UsageError(f"SQL: {one_line(error)}; {_VIEWS_WORDS}") from None
    return QueryResult(columns=columns, rows=rows)


@contextmanager
def _interrupted(connection: DuckDBPyConnection, limit_s: float) -> Iterator[None]:
    """While entered, what the connection is doing after `limit_s` is interrupted."""
    timer = threading.Timer(limit_s, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def viewed(experiment_dir: Path, lines: int, measures: tuple[str, ...]) -> DuckDBPyConnection:
    """Open a database with the views over the journal's first `lines` verified lines, whose plan declares `measures`.

    It reads the journal for as long as it is queried.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config={"temp_directory": ""})  # else queries may read what is in it
    try:
        path = _file_name(experiment_dir / JOURNAL_NAME)
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as others:
            longest = max(_LONGEST_LINE_BYTES, 2 * _copy_others(Path(path), lines, others))
            connection.execute(_OTHERS, {"path": others.name, "longest": longest})
        literal = "'" + path.replace("'", "''") + "'"
        connection.execute(f"SET allowed_paths = [{literal}]")
        connection.execute(_EPISODES.format(path=literal, longest=longest, lines=lines))
        connection.execute(_views(measures))
    except BaseException:
        connection.close()
        raise
    return connection


def _views(measures: tuple[str, ...]) -> str:
    """Return views.sql with a column per declared measure."""
    text = resources.files("esper_ab.query").joinpath("views.sql").read_text(encoding="utf-8")
    quoted = [f'"{name}"' for name in measures]
    filled = {"{means}": "".join(f",\n    list_avg([e.measures.{name} for e in r.envs]) AS {name}" for name in quoted)}
    filled["{fields}"] = f", measures STRUCT({', '.join(f'{name} DOUBLE' for name in quoted)})" if measures else ""
    filled["{keys}"] = f', "measures": {json.dumps(dict.fromkeys(measures, "DOUBLE"))}' if measures else ""
    for token, columns in filled.items():
        text = text.replace(token, columns)
    return text


def _file_name(journal: Path) -> str:
    """Return a path without DuckDB's pattern characters: if need be that of a descriptor, which stays open."""
    path = str(journal.absolute())
    if not set(_GLOB) & set(path):
        return path
    return f"/proc/self/fd/{os.open(journal, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)}"


def _copy_others(journal: Path, lines: int, others: IO[bytes]) -> int:
    """Copy the lines that are no episodes to `others`; return the bytes of the longest line of all."""
    longest = 0
    with open_to_read(journal, 1 << 20) as source:
        for line in islice(source, lines):
            longest = max(longest, len(line))
            if not is_episode(line):
                others.write(line)
    others.flush()
    return longest


def lock(connection: DuckDBPyConnection) -> None:
    """Forbid later queries access to files, network and Python variables, and lock the settings."""
    connection.execute(_LOCK)


def query_json(answer: QueryResult) -> str:
    """Return the rows of a query as a JSON array of objects."""
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    return _json(rows, indent=2)


def query_csv(answer: QueryResult) -> str:
    """Return the rows of a query as comma-separated values with a header line; NULL is empty.

    Lists, structs and maps are JSON, as in the files of `export`.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(["" if value is None else _written(value) for value in row] for row in answer.rows)
    return buffer.getvalue().removesuffix("\n")


def query_text(answer: QueryResult) -> str:
    """Return a plain table for the terminal; numbers to the right, floats in six digits, long results cut."""
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
    cut = f", the first {_ROWS_SHOWN} shown (--json and --csv give all)" if len(answer.rows) > _ROWS_SHOWN else ""
    return "\n".join([*text, f"({counted(len(answer.rows), 'row')}{cut})"])


def distinct(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns' names, those that are there before with a number: run, run_1, as in DuckDB's frames.

    Capitals make no other name, as in SQL.
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in columns:
        names = chain((name,), (f"{name}_{number}" for number in count(1)))
        found.append(next(one for one in names if one.lower() not in taken))
        taken.add(found[-1].lower())
    return tuple(found)


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(_plain(value), indent=indent, default=_written, allow_nan=False)


def _plain(value: Any) -> Any:
    """Replace infinity and NaN, which JSON lacks, by None, and SQL's decimal numbers by numbers."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _written(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _written(value: Any) -> str:
    """Return a value as SQL and JSON write it: no Python in a table or a file."""
    if isinstance(value, dict | list | tuple | bool):
        return _json(value)
    return value.decode("ascii", "backslashreplace") if isinstance(value, bytes) else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float) else visible_line(_written(value))


def one_line(error: Exception) -> str:
    """Return DuckDB's message in one line, without the excerpt of the statement and without traceback."""
    return " ".join(re.split(r"\s+LINE \d+:|\s+Traceback", str(error))[0].split())
