"""The words of verdicts, findings of the audit, and the scale of an outcome. Types only; loads no statistics."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, get_args

import msgspec

from esper_ab.contracts.measures import Margin, Measure, TaskMeasures
from esper_ab.contracts.settings import Settings

# --- word ------------------------------------------------------------------------------------------------------------
# The words of verdicts, in a module of their own: code that reads verdicts but computes none loads no statistics.


class Verdict(StrEnum):
    """The verdict on the first group against the second; members are in the order in which they are checked."""

    BLOCKED = "BLOCKED"
    NO_INFERENCE = "NO INFERENCE"
    IDENTICAL = "IDENTICAL"
    BETTER_BELOW_MARGIN = "BETTER, BELOW MARGIN"
    WORSE_BELOW_MARGIN = "WORSE, BELOW MARGIN"
    BETTER = "BETTER"
    WORSE = "WORSE"
    EQUIVALENT = "EQUIVALENT"
    INCONCLUSIVE = "INCONCLUSIVE"


DIFFERENT = frozenset({
    Verdict.BETTER, Verdict.WORSE, Verdict.BETTER_BELOW_MARGIN, Verdict.WORSE_BELOW_MARGIN,
})  # which claim a difference  # fmt: skip
CLAIMS = DIFFERENT | {Verdict.EQUIVALENT}  # which claim anything
SMALL = CLAIMS - {Verdict.BETTER, Verdict.WORSE}  # which claim that the difference is smaller than the margin


# --- finding ---------------------------------------------------------------------------------------------------------
# Findings of the audit of an experiment, and their weights. Types only; the audit itself is in analysis.


Weight = Literal["blocks", "caps", "caps equivalence", "notes"]
_WEIGHTS: tuple[Weight, ...] = get_args(Weight)


ROWS = "rows"  # kind of a finding on rows of unknown origin, which stands beside the verdict


class Finding(msgspec.Struct, frozen=True):
    """A possible cause of a difference besides the groups' settings."""

    kind: str
    weight: Weight  # "blocks": BLOCKED; "caps": at most INCONCLUSIVE; "notes": mentioned; "caps equivalence": no claim
    # that the difference is smaller than the margin: EQUIVALENT becomes INCONCLUSIVE, and BELOW MARGIN is dropped
    groups: tuple[str, ...]  # the groups it concerns; empty: the whole experiment
    sentence: str  # one sentence, ending in a full stop

    def touches(self, a: str, b: str) -> bool:
        """True if the finding concerns `a` against `b`; a finding on two groups concerns only the comparison of both.
        """
        return set(self.groups) <= {a, b}


def by_weight(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings, the weightiest first."""
    return tuple(sorted(findings, key=lambda finding: _WEIGHTS.index(finding.weight)))


# --- scale -----------------------------------------------------------------------------------------------------------
# The unit of a task's outcome, which direction is better, and how large a difference matters. Types only.


MEAN = "mean over tasks"
msgspec.json.Decoder(Measure)  # built now, in one thread: tests/house/test_decoders.py


class Scale(Settings, frozen=True, kw_only=True):
    """How the outcomes of one task are measured."""

    task: str  # "": there are no tasks
    outcome: Measure
    margin: Margin  # in the unit of a difference
    worst: float | None = None  # outcome that stands for a lost run; None: none is declared

    @property
    def measures(self) -> TaskMeasures:
        """The measures as a design contains them."""
        return TaskMeasures(outcome=self.outcome, margin=self.margin)


# Outcomes divided by their task's margin, higher always better, so that a margin of every task counts alike.
OF_MEAN = Scale(
    task=MEAN, margin=1.0,
    outcome=Measure(name="mean_over_tasks", label=MEAN, unit="margins", better="higher"),
)  # fmt: skip
