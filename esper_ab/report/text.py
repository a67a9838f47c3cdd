"""Content -> summary.txt: what the HTML page says, for a terminal. Plain ASCII-friendly text, no colour."""

from __future__ import annotations

import textwrap

from esper_ab.report.content import Content
from esper_ab.report.tables import (
    Table,
    cross_table,
    differences_table,
    facts_table,
    groups_table,
    layout_table,
    ledger_table,
    pairs_table,
    ppo_table,
    statistics_table,
)
from esper_ab.stats.comparison import Comparison
from esper_ab.stats.sign_flip import smallest_p_sentence

WIDTH = 100


def paragraph(text: str, indent: str = "  ") -> str:
    """Wrapped text; a name longer than a line is left whole."""
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def render_table(table: Table) -> str:
    """Columns padded to their widest cell: words to the left, numbers to the right."""
    lines = [table.columns, *table.rows] if any(table.columns) else list(table.rows)
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(len(table.columns))]
    text = [table.title]
    if table.rows:
        text += [
            "  "
            + "  ".join(
                cell.ljust(width) if i < table.words else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
    if table.note:
        text.append(paragraph(table.note))
    return "\n".join(text)


def render_text(content: Content) -> str:
    """The whole summary, ending in a newline."""
    plan = content.history.plan
    title = f"esper_ab: {content.title}"
    parts = [f"{title}\n{'=' * len(title)}"]
    if not content.state.complete:
        parts.append(paragraph(f"INCOMPLETE ({content.state.word}). {content.state.sentence}", ""))
    parts.append("VERDICT\n" + "\n".join(paragraph(item.sentence) for item in content.comparisons))
    parts.append(f"QUESTION\n{paragraph(plan.estimand)}")
    parts += [_comparison(item) for item in content.comparisons]
    tables = [
        groups_table(content),
        cross_table(content),
        ppo_table(content),
        differences_table(content),
        ledger_table(content.history),
        layout_table(content),
        facts_table(content.history),
    ]
    parts += [render_table(table) for table in tables if table.rows or table.note]
    if plan.notes:
        parts.append("Notes of the plan\n" + "\n".join(paragraph(f"- {note}") for note in plan.notes))
    if content.state.complete:
        parts.append(paragraph(content.state.sentence, ""))
    return "\n\n".join(parts) + "\n"


def _comparison(comparison: Comparison) -> str:
    lines = [render_table(statistics_table(comparison)) if comparison.pairs else statistics_table(comparison).title]
    lines += [paragraph(f"! {caveat}") for caveat in comparison.caveats]
    lines.append(paragraph(f"Rule: {comparison.rule} {smallest_p_sentence(comparison.question.planned_pairs)}"))
    if comparison.pairs:
        lines += ["", render_table(pairs_table(comparison))]
    return "\n".join(lines)
