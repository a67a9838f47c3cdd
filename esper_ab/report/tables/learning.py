"""Table on how far the policies have come, and the sentences on what limits the policies."""

from __future__ import annotations

from esper_ab.report.content import Content
from esper_ab.report.kind import LearningRow, tables_of
from esper_ab.report.tables.table import Table, number, percent


def learning_table(content: Content) -> Table:
    """Build the table of limits on learning, with one column and one sentence per learning group."""
    groups = content.analysis.learning
    design = content.design
    if not groups:
        return Table("What limits the learning")
    head = groups[0].head
    title = design.outcome.title
    rows: list[LearningRow] = [
        ("updates", lambda group: number(group.updates, 0)),
        ("training episodes of single environments", lambda group: number(group.episodes, 0)),
        ("trust region used by an update %", lambda group: number(percent(group.trust_region), 0)),
    ]
    if head:
        label = f"entropy of the {head} head, % of a random choice"
        rows.append((label, lambda group: number(percent(group.head_entropy), 0)))
    rows += tables_of(content).learning
    rows.append((f"{title}, sampled", lambda group: number(group.sampled, design.digits)))
    rows.append((f"{title}, greedy", lambda group: number(group.greedy, design.digits)))
    limits = " ".join(group.limit for group in groups)
    names = [group.group for group in groups]
    return Table(
        "What limits the learning",
        ("mean over runs", *names),
        rows=tuple((label, *map(format_cell, groups)) for label, format_cell in rows),
        note=f"{limits} Trust region: KL of an update as a share of ppo.target_kl. Untrained: the first episode. Last: "
        "the last tenth of the training episodes.",
    )
