"""Findings of the audit of an experiment, and their weights. Types only; the audit itself is in analysis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

Weight = Literal["blocks", "caps", "caps equivalence", "notes"]
_WEIGHTS: tuple[Weight, ...] = ("blocks", "caps", "caps equivalence", "notes")


class Finding(msgspec.Struct, frozen=True):
    """One explanation of a difference other than the groups' settings."""

    kind: str
    weight: Weight  # "blocks": BLOCKED; "caps": at most INCONCLUSIVE; "notes": said; "caps equivalence": nothing is
    # said to be smaller than the margin, so EQUIVALENT is INCONCLUSIVE, and BELOW MARGIN is left away
    groups: tuple[str, ...]  # the groups it concerns; empty: the whole experiment
    sentence: str  # one sentence, ending in a full stop

    def touches(self, a: str, b: str) -> bool:
        """Return whether it bears on the comparison of `a` with `b`: a finding on two groups, on those two only."""
        return set(self.groups) <= {a, b}


def by_weight(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return them with the weightiest first."""
    return tuple(sorted(findings, key=lambda finding: _WEIGHTS.index(finding.weight)))
