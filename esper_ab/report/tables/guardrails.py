"""The table of a comparison's guardrails: each measure that must not get worse, with its limit and result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from esper_ab.report.tables.table import NONE, Table
from esper_ab.stats.text import digits_for, percent
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.guardrail_words import worse_words
from esper_ab.verdict.guardrails import GuardrailResult


def guardrail_tables(comparisons: Sequence[Comparison]) -> Iterator[Table]:
    """Build a table for each comparison that has guardrails."""
    for item in comparisons:
        if item.guardrails:
            confidence = percent(1.0 - item.question.alpha / 2.0)
            yield Table(
                f"Guardrails of {item.question.a} against {item.question.b}",
                ("measure", "pairs", "means", "change", "at most", "allowed", "result"),
                tuple(map(_row, item.guardrails)),
                note=f"At most: the {confidence} one-sided limit. Tested in this order, until one does not hold.",
            )


def _row(result: GuardrailResult) -> tuple[str, ...]:
    guardrail = result.guardrail
    look = result.look
    change = NONE if look.worse is None else worse_words(guardrail, look.worse)
    limit = NONE if look.worse_at_most is None else worse_words(guardrail, look.worse_at_most)
    means = NONE
    if look.mean_a is not None and look.mean_b is not None:
        digits = 2 if guardrail.relative else digits_for(guardrail.margin)
        means = f"{look.mean_a:.{digits}f}, {look.mean_b:.{digits}f}"
    label = guardrail.measure.title
    pairs = f"{look.pairs} of {look.pairs + look.left_out}" if look.left_out else str(look.pairs)
    return label, pairs, means, change, limit, f"below {guardrail.margin_words}", result.result
