"""Sections of a report and their order, the same for terminal, page and Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.report.content import Content
from esper_ab.report.tables.comparison import endpoints_table, looks_table, overview_table, statistics_table
from esper_ab.report.tables.groups import (
    cross_table,
    differences_table,
    exam_outcome_table,
    exam_table,
    groups_table,
    heads_table,
    meaning_table,
    ppo_table,
)
from esper_ab.report.tables.table import Table
from esper_ab.report.tables.trust import (
    audit_table,
    conduct_table,
    facts_table,
    last_words_table,
    layout_table,
    ledger_table,
    versions_table,
)
from esper_ab.verdict import sentences as wording


@dataclass(frozen=True, kw_only=True)
class Section:
    """Tables under one heading; empty ones are left out."""

    key: str
    title: str
    tables: tuple[Table, ...]


def sections(content: Content) -> tuple[Section, ...]:
    """Return the sections of a report in reading order."""
    analysis, history = content.analysis, content.history
    found = {
        "outcome": ("Outcome", (
            exam_outcome_table(analysis.exam), overview_table(content.comparisons), exam_table(analysis.exam)
        ),),
        "statistics": (
            "Statistics",
            (
                *(table for item in content.comparisons if (table := statistics_table(item)).rows),
                endpoints_table(content), looks_table(content.comparisons),
            ),
        ),
        "groups": (
            "Groups",
            (
                groups_table(content), differences_table(content), cross_table(content, analysis.cross),
                meaning_table(analysis.cross),
            ),
        ),
        "training": ("Training", (heads_table(content), ppo_table(content))),
        "trust": (
            "Can it be trusted?",
            (
                audit_table(analysis.audit), conduct_table(analysis.conduct), layout_table(content),
                ledger_table(history), last_words_table(history), facts_table(content),
            ),
        ),
        "again": ("The same again", (versions_table(history),)),
    }
    return tuple(
        Section(key=key, title=title, tables=tuple(table for table in tables if table))
        for key, (title, tables) in found.items()
    )


def rule_sentence(content: Content) -> str:
    """Return the rule that was declared before the first run, as a sentence."""
    return f"Rule, declared before the first run: {wording.rule_sentence(content.history.design)}"
