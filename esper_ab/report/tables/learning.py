"""Table on how far the policies have come, and the sentences on what limits the policies."""

from __future__ import annotations

from esper_ab.report.content import Content
from esper_ab.report.kinds import LearningRow, kind_of
from esper_ab.report.tables.table import Table, number, percent


def learning_table(content: Content) -> Table:
    """Build the table of limits on learning, with one column and one sentence per learning group."""
    groups = content.analysis.learning
    design = content.design
    if not groups:
        return Table("What limits the learning")
    head = groups[0].head
    title = design.outcome.title
    entropy: LearningRow = (
        f"entropy of the {head} head, % of a random choice",
        lambda one: number(percent(one.head_entropy), 0),
    )
    rows: list[LearningRow] = [
        ("updates", lambda one: number(one.updates, 0)),
        ("training episodes of single environments", lambda one: number(one.episodes, 0)),
        ("trust region used by an update %", lambda one: number(percent(one.trust_region), 0)),
        *([entropy] if head else []),
        *kind_of(content).learning,
        (f"{title}, sampled", lambda one: number(one.sampled, design.digits)),
        (f"{title}, greedy", lambda one: number(one.greedy, design.digits)),
    ]
    limits = " ".join(one.limit for one in groups)
    return Table(
        "What limits the learning",
        ("mean over runs", *(one.group for one in groups)),
        rows=tuple((label, *map(show, groups)) for label, show in rows),
        note=f"{limits} Trust region: KL of an update as a share of ppo.target_kl. Untrained: the first episode. Last: "
        "the last tenth of the training episodes.",
    )
