"""Why a comparison is not decided. Pure; `headline` words the reasons."""

from __future__ import annotations

from enum import Enum, auto

from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.drift import DRIFT
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.finding import LOST_SCORES
from esper_ab.verdict.guardrail_look import claims_for_a
from esper_ab.verdict.not_worse import NotWorse


class Undecided(Enum):
    """Why a comparison is not decided; members are in the order in which `why_undecided` checks them."""

    DRIFT = auto()  # of the differences, and no other finding of the audit caps the verdict
    LOST_SCORES = auto()  # on items, likewise
    AUDIT = auto()
    LOST_RUNS = auto()  # with the worst outcome given to them, they could change the answer
    LOST_WITHOUT_WORST = auto()  # no worst outcome is declared, so any answer is possible
    BASELINE = auto()  # no better than a group that learns nothing
    NO_PAIR = auto()
    FEW_PAIRS = auto()
    FUTILE = auto()
    WITHDRAWN = auto()  # an earlier look decided what the last one does not confirm
    NO_SPREAD = auto()
    NO_INTERVAL = auto()
    TOO_EARLY = auto()  # to call the difference smaller than the margin
    MARGIN_INSIDE = auto()  # the one-sided limit of a plan that claims that a group is not worse
    SHAPE = auto()  # the t-test reached its bound, but the interval that holds for any shape includes 0
    ZERO_INSIDE = auto()  # the interval
    NO_LOOK = auto()  # the first planned one is still to come
    GUARDRAILS = auto()  # the outcome reached its bound, but a guardrail is not shown yet
    SIGNS = auto()  # the exact sign-flip test, which so few pairs also need, has not reached its bound
    BOUND = auto()  # the test has not reached it


def why_undecided(evidence: Evidence) -> Undecided:
    """Return why an INCONCLUSIVE comparison is not decided: the audit, the losses, the looks, then the interval."""
    progress = evidence.progress
    if evidence.capped_by:
        return _why_capped(evidence)
    if evidence.estimate is None:
        return Undecided.NO_PAIR
    if evidence.used < LEAST_PAIRS:
        return Undecided.FEW_PAIRS
    if progress.standing == "futile":
        return Undecided.FUTILE
    if progress.decision != progress.standing:
        return Undecided.WITHDRAWN
    return _why_open(evidence)


def _why_capped(evidence: Evidence) -> Undecided:
    caps = {finding.kind for finding in evidence.findings if finding.weight == "caps"}
    if caps == {DRIFT}:
        return Undecided.DRIFT
    if caps == {LOST_SCORES}:
        return Undecided.LOST_SCORES
    if caps:
        return Undecided.AUDIT
    imputation = evidence.imputed
    if imputation is None or imputation.survives:
        return Undecided.BASELINE
    if imputation.mean is None:
        return Undecided.LOST_WITHOUT_WORST
    return Undecided.LOST_RUNS


def _why_open(evidence: Evidence) -> Undecided:
    """Return the reason that follows from the interval."""
    low = evidence.low
    high = evidence.high
    last_look = evidence.last_look
    if last_look is not None and evidence.guardrails and claims_for_a(last_look, evidence.question.sign):
        return Undecided.GUARDRAILS
    if low is None or high is None:
        return Undecided.NO_SPREAD if evidence.degenerate else Undecided.NO_INTERVAL
    if evidence.last_look is not None and evidence.last_look.non_inferiority is not None:
        return _why_not_shown(evidence, evidence.last_look.non_inferiority)
    if evidence.lacking_shape:
        return Undecided.SHAPE
    if low <= 0.0 <= high:
        return Undecided.TOO_EARLY if evidence.small_from else Undecided.ZERO_INSIDE
    if evidence.last_look is None:
        return Undecided.NO_LOOK
    return Undecided.SIGNS if evidence.lacking_signs else Undecided.BOUND


def _why_not_shown(evidence: Evidence, not_worse: NotWorse) -> Undecided:
    """Return why a group is not shown to be not worse."""
    if evidence.small_from:
        return Undecided.TOO_EARLY
    if not_worse.worse_limit(evidence.question.sign) is None:
        return Undecided.NO_INTERVAL
    return Undecided.MARGIN_INSIDE
