"""The sentences on claims that must hold whatever the shapes of the groups' distributions (`--shape any`). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.stats.pair import Pairs, ends
from esper_ab.verdict.evidence import Evidence


def lacking_evidence(evidence: Evidence) -> str:
    """Say which of the t-test and the evidence for any shape excludes 0, if only one of them does; "" otherwise."""
    look = evidence.last_look
    if look is None or look.any_shape is None or look.crossed:
        return ""
    low, high = look.any_shape
    if evidence.lacking_shape:
        return "The t-test excludes 0, but the evidence for any shape does not."
    if not look.bound_reached and (low > 0.0 or high < 0.0):
        return "The evidence for any shape excludes 0, but the t-test does not."
    return ""


def any_shape_caveats(evidence: Evidence) -> Iterator[str]:
    """Name an outcome beyond the declared range, on which a claim for any shape rests."""
    design = evidence.design
    best = design.outcome.best_possible
    if not evidence.level.any_shape or design.worst is None or best is None:
        return
    seen_outcomes = ends(_used(evidence))
    worst_seen = design.outcome.worst((design.worst, *seen_outcomes))
    best_seen = design.outcome.best((best, *seen_outcomes))
    facts = []
    for end, extreme, end_value in (("worst", worst_seen, design.worst), ("best", best_seen, best)):
        if extreme != end_value:
            facts.append(f"{design.value(extreme)} beyond the {end} declared outcome ({design.value(end_value)})")
    if facts:
        yield (
            f"A run has {' and one '.join(facts)}: the interval counts with it, but holds for any shape only if no "
            "run can lie further out."
        )


def _used(evidence: Evidence) -> Pairs:
    return evidence.pairs[: evidence.used]
