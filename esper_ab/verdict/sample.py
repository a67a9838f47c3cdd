"""How large the sample of a comparison is, and how large it must be for a claim. Pure.

Pairs without items below them: LEAST_PAIRS. Items of checkpoints: LEAST_ITEMS independent ones. Trainings: LEAST_PAIRS
runs in each group, and LEAST_TRAINING_ITEMS independent items, without which their spread is not known well enough.
Items that share a cluster count as fewer independent ones: as many as there are clusters, if these are equally large.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from esper_ab.design.design import Design
from esper_ab.stats.item_difference import ItemDifference
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.compared_items import ComparedItems

LEAST_ITEMS = 20  # independent items of checkpoints
LEAST_TRAINING_ITEMS = 10  # independent items below the runs
_ROUNDING = 1e-6  # of a number of effective clusters


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The size of what limits a claim: of the sample's parts, the first that is too small, else its pairs or items."""

    kind: Literal["pairs", "runs", "items"]
    size: int
    least: int

    @property
    def suffices(self) -> bool:
        """True if the sample is large enough for a claim."""
        return self.size >= self.least


def sample_of(effect: object, pairs: int, items: ComparedItems | None) -> Sample:
    """Return the sample of `pairs` pairs (or runs per group, or items) with the scores `items` below them."""
    if items is None:
        return Sample(kind="pairs", size=pairs, least=LEAST_PAIRS)
    independent_rows = pairs
    if isinstance(effect, ItemDifference):
        independent_rows = int(effect.effective_clusters + _ROUNDING)
    if items.level == "checkpoints":
        return Sample(kind="items", size=independent_rows, least=LEAST_ITEMS)
    if pairs >= LEAST_PAIRS and independent_rows < LEAST_TRAINING_ITEMS:
        return Sample(kind="items", size=independent_rows, least=LEAST_TRAINING_ITEMS)
    return Sample(kind="runs", size=pairs, least=LEAST_PAIRS)


def least_small(design: Design, replicates: int, sample: Sample, items: ComparedItems | None) -> int | None:
    """Return the number of pairs that a look needs before it may call a difference small; None: it may not."""
    least_pairs = design.least_small(replicates)
    if items is None or least_pairs is None:
        return least_pairs
    if not sample.suffices:
        return None
    return sample.least if items.level == "checkpoints" else least_pairs
