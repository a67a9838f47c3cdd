"""Sections of a report and their order, the same for terminal, page and Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.report.content import Content
from esper_ab.report.kinds import kind_of
from esper_ab.report.tables import comparison, groups, learning, reward_audit, trust
from esper_ab.report.tables.table import Table
from esper_ab.verdict import sentences as wording


@dataclass(frozen=True, kw_only=True)
class Section:
    """Tables under one heading; empty ones are left out."""

    key: str
    title: str
    tables: tuple[Table, ...]


def sections(content: Content) -> tuple[Section, ...]:
    """Return the sections of a report in reading order."""
    analysis, compared = content.analysis, content.comparisons
    judgement = kind_of(content).judgement(content)
    deciding = (table for item in compared if (table := comparison.deciding_table(item)).rows)
    return (
        _section(
            "outcome", "Outcome", *judgement[:1], comparison.overview_table(content.design, compared),
            *judgement[1:],
        ),
        _section(
            "statistics", "Statistics", *deciding, comparison.outcomes_table(content),
            comparison.looks_table(compared), *comparison.beside_tables(compared),
        ),
        _section(
            "groups", "Groups", groups.groups_table(content), groups.differences_table(content),
            groups.cross_table(content, analysis.cross), groups.meaning_table(content, analysis.cross),
        ),
        _section(
            "rewards", "What the rewards pay for",
            *(reward_audit.tables(analysis.reward_audit) if analysis.reward_audit else ()),
        ),
        _section(
            "training", "Training", learning.learning_table(content), groups.heads_table(content),
            groups.ppo_table(content),
        ),
        _section(
            "trust", "Can it be trusted?", trust.audit_table(analysis.findings),
            trust.conduct_table(analysis.conduct, kind_of(content).words),
            trust.noise_table(content), trust.layout_table(content), trust.incidents_table(content.history),
            trust.last_words_table(content.history), trust.facts_table(content),
        ),
        _section("again", "The same again", trust.versions_table(content.history)),
    )


def _section(key: str, title: str, *tables: Table) -> Section:
    return Section(key=key, title=title, tables=tuple(filter(None, tables)))


def rule_sentence(content: Content) -> str:
    """Return the rule that was declared before the first run, as a sentence."""
    return f"Rule, declared before the first run: {wording.rule_sentence(content.design)}"
