"""The conclusions of an experiment as the tables `comparisons` and `pairs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from esper_ab.verdict.comparison import Comparison

_CREATE_TABLES = """
CREATE TABLE comparisons (
    a VARCHAR, b VARCHAR, verdict VARCHAR, estimate DOUBLE, low DOUBLE, high DOUBLE, level VARCHAR, t_p DOUBLE,
    sign_flip_p DOUBLE, hedges_g DOUBLE, a12 DOUBLE, correlation DOUBLE, used_pairs INTEGER,
    all_pairs INTEGER, planned INTEGER, lost INTEGER, margin DOUBLE, alpha DOUBLE, decision VARCHAR,
    decided_at INTEGER, sentence VARCHAR);
CREATE TABLE pairs (
    a VARCHAR, b VARCHAR, replicate INTEGER, outcome_a DOUBLE, outcome_b DOUBLE, difference DOUBLE,
    position_a INTEGER, position_b INTEGER, used BOOLEAN)
"""


def add_conclusions(connection: DuckDBPyConnection, comparisons: Sequence[Comparison]) -> None:
    """Create the tables `comparisons` and `pairs`, one row per comparison and per pair, in the order of the design."""
    connection.execute(_CREATE_TABLES)
    for comparison in comparisons:
        question = comparison.question
        progress = comparison.progress
        effect = comparison.effect
        sign_flip = comparison.descriptive.get("sign_flip")
        hedges = comparison.descriptive.get("hedges_g")
        improvement = comparison.descriptive.get("improvement")
        correlation = comparison.descriptive.get("correlation")
        _insert(
            connection,
            "comparisons",
            question.a,
            question.b,
            str(comparison.verdict),
            comparison.estimate,
            comparison.low,
            comparison.high,
            str(comparison.level),
            effect and effect.p,
            sign_flip and sign_flip.p,
            hedges and hedges.g,
            improvement and improvement.a12,
            correlation and correlation.r,
            comparison.used,
            len(comparison.pairs),
            question.planned,
            len(comparison.lost.replicates),
            question.design.margin,
            question.alpha,
            progress.decision,
            progress.decided_at,
            comparison.sentence,
        )
        for index, pair in enumerate(comparison.pairs):
            _insert(
                connection,
                "pairs",
                question.a,
                question.b,
                pair.replicate,
                pair.a,
                pair.b,
                pair.a - pair.b,
                pair.position_a,
                pair.position_b,
                index < comparison.used,
            )


def _insert(connection: DuckDBPyConnection, table: str, *row: Any) -> None:
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
