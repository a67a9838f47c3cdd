"""The report of a separate reward audit, computed from that audit alone."""

from __future__ import annotations

from functools import partial

from esper_ab.analysis.reward_audit import RewardAuditFindings
from esper_ab.contracts.wording import listed
from esper_ab.report.document import Document, Figures, Paragraphs, Section
from esper_ab.report.figures.reward_audit import drawings
from esper_ab.report.tables.reward_audit import sentences, tables


def reward_audit_report(audit: RewardAuditFindings) -> Document:
    """Return the report of a reward audit, before any layout."""
    return Document(
        title=f"{listed([reward.name for reward in audit.rewards])} on {audit.reward_audit.question.task}",
        name="reward audit",
        nodes=(
            Paragraphs(sentences(audit), look="lead"),
            Section((Figures(partial(drawings, audit)), *tables(audit))),
        ),
        footer=f"Digest {audit.reward_audit.digest}. Every number is a function of reward_audit.json.",
    )
