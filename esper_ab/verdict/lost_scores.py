"""A finding on scores of single items that runs lost: it caps an answer about training. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.wording import counted
from esper_ab.design.design import Contrast
from esper_ab.verdict.finding import LOST_SCORES, Finding
from esper_ab.verdict.observations import Observations


def lost_score_findings(observations: Observations, contrast: Contrast) -> Iterator[Finding]:
    """Yield a finding that caps an answer about training if runs lost scores on single items, whose items are left out.

    Scores need not be lost at random. About checkpoints, a lost item is a lost row.
    """
    items = observations.items
    if items is None or items.level == "checkpoints":
        return
    lost = [items.lost_of(group) for group in contrast.groups]
    if any(lost):
        yield Finding(
            kind=LOST_SCORES,
            weight="caps",
            groups=contrast.groups,
            sentence=f"{counted(lost[0], 'score')} of {contrast.a} and {lost[1]} of {contrast.b} were lost, so their "
            f"{items.unit}s are left out; for a verdict, give a failed {items.unit} its worst outcome, or remove it "
            "from all runs.",
        )
