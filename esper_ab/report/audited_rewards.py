"""A reward audit by itself, as text for a terminal and as a page: functions of the reward audit alone."""

from __future__ import annotations

from esper_ab.analysis.reward_audit import RewardAuditFindings
from esper_ab.contracts.visible import visible
from esper_ab.report.figures.reward_audit import drawings
from esper_ab.report.page import render_template
from esper_ab.report.tables import reward_audit as reward_audit_tables
from esper_ab.report.tables.table import listed
from esper_ab.report.text import paragraph, render_table


def render_reward_audit_text(found: RewardAuditFindings) -> str:
    """Render sentences and tables for a terminal, ending in a newline."""
    title = _title(found)
    said = "\n".join(paragraph(sentence, "", hanging="  ") for sentence in reward_audit_tables.sentences(found))
    parts = [f"{title}\n{'=' * len(title)}", said, *map(render_table, reward_audit_tables.tables(found))]
    return visible("\n\n".join(parts)) + "\n"


def render_reward_audit_page(found: RewardAuditFindings) -> str:
    """Render the page; the same text for the same reward_audit."""
    return render_template(
        "reward_audit.html.jinja", title=_title(found), sentences=reward_audit_tables.sentences(found),
        drawings=drawings(found), tables=reward_audit_tables.tables(found),
        digest=found.reward_audit.digest,
    )


def _title(found: RewardAuditFindings) -> str:
    return f"{listed([reward.name for reward in found.rewards])} on {found.reward_audit.question.task}"
