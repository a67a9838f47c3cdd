"""SQL over an experiment directory: the views of views.sql over a verified journal, and nothing else.

DuckDB reads episode records from the file when a query needs them, and only the columns of the view, because a
journal may exceed memory. Everything else is a table. After the views are made, external access is disabled except
for that one file, and the configuration is locked. Queries cannot spill to disk. Their time, memory and rows are
limited, because the SQL may be somebody else's.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.measures import TaskMeasures
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.journal.line import is_episode
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.readers.bounded import in_time, more_memory
from esper_ab.readers.query_result import QueryResult
from esper_ab.readers.tables import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

LIMIT_S = 300.0  # for the answer to a query
MOST_BYTES = 4 << 30  # memory of a query with its rows; of DuckDB's own buffers, and of the process in addition
MOST_ROWS = 5_000_000
MOST_TEXT_BYTES = 512 << 20
VIEWS = ("runs", "episodes", "env_episodes", "evaluations", "ppo_updates", "seed_events", "incidents")
_LONGEST_LINE_BYTES = 16 << 20  # longest episode line; DuckDB keeps two such buffers per core
_GLOB = "*?["  # characters that DuckDB treats as a file pattern
_ROWS_AT_ONCE = 1024  # fetched at once, at most
_PIECE_BYTES = 1 << 20  # text in the rows that are fetched at once; rows with more are fetched one by one
_LESS = "query less, for example with LIMIT; `esper-ab export` writes whole tables"
_SECOND_NAMES = {"held_out_accuracy": "final_accuracy"}  # of an outcome, as the first plan of dual-policy tests has it
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
# Lines appended later are excluded; a half-written line is not yet JSON and is ignored.
_EPISODES = """
CREATE MACRO episode_lines(record_type) AS TABLE
SELECT n, CAST(t AS TIMESTAMP) AS t, event.record AS record
FROM read_json({path}, format = 'newline_delimited', maximum_object_size = {longest}, ignore_errors = true,
               columns = {{n: 'BIGINT', t: 'VARCHAR', event: 'STRUCT(kind VARCHAR, record ' || record_type || ')'}})
WHERE n < {lines} AND event.kind = 'episode'
"""


def query(experiment_dir: Path, sql: str, limit_s: float = LIMIT_S) -> QueryResult:
    """Run `sql` and return its rows.

    Raises UsageError, with a one-line message, if DuckDB refuses the query, if the query takes longer than `limit_s` or
    needs more than MOST_BYTES of memory, or if the result is too large; and JournalError if the journal is damaged.
    """
    import duckdb

    loaded_journal = load(experiment_dir)
    connection = viewed(experiment_dir, loaded_journal.lines, loaded_journal.history.design.measures)
    connection.execute(f"SET memory_limit = '{MOST_BYTES >> 20}MiB'")
    lock(connection)

    def answer() -> QueryResult:
        with connection:  # closed by this thread, because closing waits for the query
            columns = tuple(relation(connection, sql, VIEWS).columns)
            return QueryResult(columns=columns, rows=tuple(_rows(connection.execute(sql))))

    try:
        with more_memory(MOST_BYTES):
            return in_time(answer, connection.interrupt, limit_s)
    except (TimeoutError, duckdb.InterruptException):
        raise UsageError(f"SQL: no answer within {limit_s:g} s; query less, or allow more time") from None
    except (MemoryError, duckdb.OutOfMemoryException):
        raise UsageError(f"SQL: more than {MOST_BYTES >> 30} GiB of memory needed; {_LESS}") from None
    except duckdb.Error as error:
        raise UsageError(f"SQL: {one_line(error)}") from None


def _rows(result: DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a result, fetched in pieces; raises UsageError if there are too many, or too large ones."""
    rows = 0
    text_bytes = 0
    batch_size = 1
    while piece := result.fetchmany(batch_size):
        size = sum(map(_text_bytes, piece))
        if size < _PIECE_BYTES:
            batch_size = min(2 * batch_size, _ROWS_AT_ONCE)
        else:
            batch_size = 1
        rows += len(piece)
        text_bytes += size
        if rows > MOST_ROWS:
            raise UsageError(f"SQL: more than {MOST_ROWS:,} rows; {_LESS}")
        if text_bytes > MOST_TEXT_BYTES:
            raise UsageError(f"SQL: more than {MOST_TEXT_BYTES >> 20} MiB of text in the rows; {_LESS}")
        yield from piece


def _text_bytes(row: tuple[Any, ...]) -> int:
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def viewed(experiment_dir: Path, lines: int, measures: TaskMeasures) -> DuckDBPyConnection:
    """Open a database with the views over the journal's first `lines` verified lines.

    `measures`: the outcome and measures that the plan declares. Every query reads the journal again.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config={"temp_directory": ""})  # or queries could read temporary files
    try:
        path = _file_name(experiment_dir / JOURNAL_NAME)
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as other_lines:
            longest_line = max(_LONGEST_LINE_BYTES, 2 * _copy_others(Path(path), lines, other_lines))
            connection.execute(_OTHERS, {"path": other_lines.name, "longest": longest_line})
        literal = "'" + path.replace("'", "''") + "'"
        connection.execute(f"SET allowed_paths = [{literal}]")
        connection.execute(_EPISODES.format(path=literal, longest=longest_line, lines=lines))
        connection.execute(_views(measures))
    except BaseException:
        connection.close()
        raise
    return connection


def _views(measures: TaskMeasures) -> str:
    """Return views.sql with a column per declared measure, and the outcome under its second name, if it has one."""
    text = resources.files("esper_ab.readers").joinpath("views.sql").read_text(encoding="utf-8")
    quoted_names = [f'"{name}"' for name in measures.names]
    columns_by_token = {"{second}": "", "{means}": "", "{fields}": "", "{keys}": ""}
    if second_name := _SECOND_NAMES.get(measures.outcome.name):
        columns_by_token["{second}"] = f",\n    list_avg([e.outcome for e in r.envs]) AS {second_name}"
    if quoted_names:
        means = [f",\n    list_avg([e.measures.{name} for e in r.envs]) AS {name}" for name in quoted_names]
        columns_by_token["{means}"] = "".join(means)
        columns_by_token["{fields}"] = f", measures STRUCT({', '.join(f'{name} DOUBLE' for name in quoted_names)})"
        columns_by_token["{keys}"] = f', "measures": {json.dumps(dict.fromkeys(measures.names, "DOUBLE"))}'
    for token, columns in columns_by_token.items():
        text = text.replace(token, columns)
    return text


def _file_name(journal: Path) -> str:
    """Return a path to the journal without DuckDB's pattern characters, if needed via a descriptor that stays open."""
    path = str(journal.absolute())
    if not set(_GLOB) & set(path):
        return path
    return f"/proc/self/fd/{os.open(journal, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)}"


def _copy_others(journal: Path, lines: int, other_lines: IO[bytes]) -> int:
    """Copy all lines except episodes to `other_lines`; return the length in bytes of the journal's longest line."""
    longest_line = 0
    with open_to_read(journal, 1 << 20) as source:
        for line in islice(source, lines):
            longest_line = max(longest_line, len(line))
            if not is_episode(line):
                other_lines.write(line)
    other_lines.flush()
    return longest_line


def lock(connection: DuckDBPyConnection) -> None:
    """Deny later queries access to files, the network and Python variables, and lock the settings."""
    connection.execute(_LOCK)


def distinct(columns: Sequence[str]) -> tuple[str, ...]:
    """Return distinct column names: a repeated name gets a number (run, run_1), as in DuckDB's frames.

    As in SQL, names that differ only in case count as equal.
    """
    names: list[str] = []
    taken_names: set[str] = set()
    for column in columns:
        name = column
        number = 0
        while name.lower() in taken_names:
            number += 1
            name = f"{column}_{number}"
        names.append(name)
        taken_names.add(name.lower())
    return tuple(names)


def one_line(error: Exception) -> str:
    """Return DuckDB's message in one line, without the excerpt of the statement and without a traceback."""
    return " ".join(re.split(r"\s+LINE \d+:|\s+Traceback", str(error))[0].split())


def relation(connection: DuckDBPyConnection, sql: str, tables: Sequence[str] = TABLES) -> DuckDBPyRelation:
    """Return the lazy result of one SELECT over `tables`, with distinct column names.

    Raises UsageError for any other statement, so that the tables stay unchanged.
    """
    import duckdb

    try:
        statements = connection.extract_statements(sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise UsageError(f"SQL: expected one SELECT, not {sql!r}; tables: {', '.join(tables)}")
        rows = connection.sql(sql)
        names = distinct(rows.columns)
        if list(names) == rows.columns:
            return rows
        return rows.project(", ".join(f"#{place} AS {_quoted(name)}" for place, name in enumerate(names, start=1)))
    except duckdb.Error as error:
        raise UsageError(f"SQL: {one_line(error)}; tables: {', '.join(tables)}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
