"""An experiment directory as tables: the views of docs/sql.md and the conclusions, for data frames and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from esper_ab.contracts.errors import UsageError
from esper_ab.query.sql import distinct, one_line

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from esper_ab.verdict.comparison import Comparison

KINDS = ("pandas", "polars", "pyarrow", "duckdb")  # the first that is installed; duckdb always is
# Rows by run, then by the columns that identify a row; n: the order of the journal.
_ORDER = {
    "runs": "group_id, replicate", "episodes": "group_id, replicate, episode",
    "env_episodes": "group_id, replicate, episode, env",
    "evaluations": "group_id, replicate, actions DESC, episode, env", "ppo_updates": "group_id, replicate, episode",
    "seed_events": "group_id, replicate, episode, n", "incidents": "n", "comparisons": "n", "pairs": "n",
}
TABLES = tuple(_ORDER)
_CONCLUDED = """
CREATE TABLE comparisons (
    a VARCHAR, b VARCHAR, verdict VARCHAR, estimate DOUBLE, low DOUBLE, high DOUBLE, level VARCHAR, t_p DOUBLE,
    sign_flip_p DOUBLE, rank_p DOUBLE, hedges_g DOUBLE, a12 DOUBLE, correlation DOUBLE, used_pairs INTEGER,
    all_pairs INTEGER, planned INTEGER, lost INTEGER, margin DOUBLE, alpha DOUBLE, decision VARCHAR,
    decided_at INTEGER, sentence VARCHAR);
CREATE TABLE pairs (
    a VARCHAR, b VARCHAR, replicate INTEGER, outcome_a DOUBLE, outcome_b DOUBLE, difference DOUBLE,
    position_a INTEGER, position_b INTEGER, used BOOLEAN)
"""


def add_conclusions(connection: DuckDBPyConnection, comparisons: Sequence[Comparison]) -> None:
    """Create the tables `comparisons` and `pairs`, one row per comparison and per pair, in the order of the design."""
    connection.execute(_CONCLUDED)
    for table, rows in (("comparisons", _comparisons(comparisons)), ("pairs", _pairs(comparisons))):
        for row in rows:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _comparisons(comparisons: Sequence[Comparison]) -> Iterator[tuple[Any, ...]]:
    for one in comparisons:
        question, course = one.question, one.course
        flip, improvement, correlation = map(one.descriptive.get, ("sign_flip", "improvement", "correlation"))
        yield (
            question.a, question.b, str(one.verdict), one.estimate, one.low, one.high, str(one.level),
            one.effect and one.effect.p, flip and flip.p, one.rank and one.rank.p, one.descriptive["hedges_g"],
            improvement and improvement.a12, correlation and correlation.r, one.used, len(one.pairs),
            question.planned, len(one.lost.replicates), question.design.margin, question.alpha, course.decision,
            course.decided_at, one.sentence,
        )  # fmt: skip


def _pairs(comparisons: Sequence[Comparison]) -> Iterator[tuple[Any, ...]]:
    for one in comparisons:
        for index, pair in enumerate(one.pairs):
            yield (
                one.question.a, one.question.b, pair.replicate, pair.a, pair.b, pair.a - pair.b, pair.position_a,
                pair.position_b, index < one.used,
            )  # fmt: skip


def table_sql(name: str) -> str:
    """Return SQL for one of TABLES with its rows in a fixed order."""
    numbered = f"SELECT *, row_number() OVER () AS n FROM {name}"
    return f"SELECT * EXCLUDE (n) FROM ({numbered}) ORDER BY {_ORDER[name]}"


def relation(connection: DuckDBPyConnection, sql: str) -> DuckDBPyRelation:
    """Return the lazy result of one SELECT, its columns of distinct names.

    UsageError for anything else, so that the tables stay unchanged.
    """
    import duckdb

    try:
        statements = connection.extract_statements(sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise UsageError(f"SQL: one SELECT is expected, not {sql!r}; tables: {', '.join(TABLES)}")
        found = connection.sql(sql)
        names = distinct(found.columns)
        if list(names) == found.columns:
            return found
        return found.project(", ".join(f"#{place} AS {_quoted(name)}" for place, name in enumerate(names, start=1)))
    except duckdb.Error as error:
        raise UsageError(f"SQL: {one_line(error)}; tables: {', '.join(TABLES)}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def kind_of(asked: str | None) -> str:
    """Return the frame type: `asked`, or the first of KINDS that is installed. UsageError when it is unavailable."""
    if asked is None:
        return next(kind for kind in KINDS if find_spec(kind) is not None)
    if asked not in KINDS:
        raise UsageError(f"as_={asked!r}: no such frame; there is {', '.join(KINDS)}")
    if find_spec(asked) is None:
        raise UsageError(f"as_={asked!r}: {asked} is not installed; there is {', '.join(filter(find_spec, KINDS))}")
    return asked


def frame(found: DuckDBPyRelation, asked: str | None) -> Any:
    """Convert to a pandas or polars DataFrame or a pyarrow Table, or return the relation; imports only that library.

    UsageError for a query that fails while it is computed; a relation is computed when it is read.
    """
    import duckdb

    kind = kind_of(asked)
    try:
        if kind == "pandas":
            return found.df()
        if kind == "pyarrow":
            return found.to_arrow_table()
        if kind == "polars" and find_spec("pyarrow") is not None:
            return found.pl()
        if kind == "polars":  # by Arrow's C stream, which prints at exit if torch is loaded
            import polars

            return polars.DataFrame(found)
        return found
    except duckdb.Error as error:
        raise UsageError(f"SQL: {one_line(error)}") from None
