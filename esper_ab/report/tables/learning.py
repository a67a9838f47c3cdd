"""Table on how far the policies have come, and the sentences on what limits them."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.analysis.learning import Learning
from esper_ab.report.tables.table import NONE, Table, number


def learning_table(groups: Sequence[Learning]) -> Table:
    """Build one column per learning group, with a sentence each."""
    rows = (
        ("updates", *(number(one.updates, 0) for one in groups)),
        ("hosts grown in training", *(number(one.hosts, 0) for one in groups)),
        ("trust region used by an update %", *(_percent(one.trust_region) for one in groups)),
        ("entropy of the op head, % of a random choice", *(_percent(one.op_entropy) for one in groups)),
        ("prunes per host, untrained → last", *(_change(one.prunes_first, one.prunes_last) for one in groups)),
        ("fossils per host, untrained → last", *(_change(one.fossils_first, one.fossils_last) for one in groups)),
        ("held-out accuracy %, sampled", *(number(one.sampled) for one in groups)),
        ("held-out accuracy %, greedy", *(number(one.greedy) for one in groups)),
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


def _change(first: float | None, last: float | None) -> str:
    return f"{number(first)} → {number(last)}"
