"""Table on how far the policies have come, and the sentences on what limits them."""

from __future__ import annotations

from esper_ab.report.content import Content
from esper_ab.report.kinds import kind_of
from esper_ab.report.tables.table import NONE, Table, number


def learning_table(content: Content) -> Table:
    """Build one column per learning group, with a sentence each."""
    groups, design = content.analysis.learning, content.design
    head = groups[0].head if groups else ""
    entropy = f"entropy of the {head} head, % of a random choice", *(_percent(one.head_entropy) for one in groups)
    rows = (
        ("updates", *(number(one.updates, 0) for one in groups)),
        ("training episodes of single environments", *(number(one.episodes, 0) for one in groups)),
        ("trust region used by an update %", *(_percent(one.trust_region) for one in groups)),
        *((entropy,) if head else ()),
        *((label, *(show(one) for one in groups)) for label, show in kind_of(content).learning),
        (f"{design.outcome.title}, sampled", *(number(one.sampled, design.digits) for one in groups)),
        (f"{design.outcome.title}, greedy", *(number(one.greedy, design.digits) for one in groups)),
    )
    return Table(
        title="What limits the learning",
        columns=("mean over runs", *(one.group for one in groups)),
        rows=rows if groups else (),
        note=" ".join(
            [
                *(one.limit for one in groups),
                "Trust region: KL of an update as a share of ppo.target_kl. Untrained: the first episode. Last: the "
                "last tenth of the training episodes.",
            ]
        )
        if groups
        else "",
        wide=True,
    )


def _percent(share: float | None) -> str:
    return NONE if share is None else number(100 * share, 0)
