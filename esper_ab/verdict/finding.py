"""Findings of the audit of an experiment, and their weights. Types only; the audit itself is in analysis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

Weight = Literal["blocks", "caps", "caps equivalence", "notes"]
_WEIGHTS: tuple[Weight, ...] = get_args(Weight)


ROWS = "rows"  # kind of a finding on rows of unknown origin, which stands beside the verdict
LOST_SCORES = "lost scores"  # kind of a finding on scores of items that runs lost
MIXED_CODE = "mixed code"  # kind of a finding on results of different files of a trainer, shown beside the verdict
SEED = "seed"  # kind of a finding on seeds that do not repeat, which stands beside the verdict
BESIDE_THE_CODE = "beside the code"  # kind of a finding on what differs beside states of the code, likewise
OLDER_RUNS = "older runs"  # kind of a finding on runs of other days that do not repeat, likewise


class Finding(msgspec.Struct, frozen=True):
    """A possible cause of a difference besides the groups' settings."""

    kind: str
    weight: Weight  # "blocks": BLOCKED; "caps": at most INCONCLUSIVE; "notes": mentioned; "caps equivalence": no claim
    # that the difference is smaller than the margin: EQUIVALENT becomes INCONCLUSIVE, and BELOW MARGIN is dropped
    groups: tuple[str, ...]  # the groups it concerns; empty: the whole experiment
    sentence: str  # one sentence, ending in a full stop

    def touches(self, a: str, b: str) -> bool:
        """True if the finding concerns `a` against `b`.

        A finding on two groups concerns only the comparison of both.
        """
        return set(self.groups) <= {a, b}


def by_weight(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings, the weightiest first."""
    return tuple(sorted(findings, key=lambda finding: _WEIGHTS.index(finding.weight)))
