"""The guardrails of a comparison: tested in their order, once its claim is made, until one does not hold. Pure.

Pairs with equal records need no claim: no measure in them is worse, and the others are tested as after a claim.

Each is tested one-sided at the bounds of BETTER, which are not divided among them (fixed sequence: Maurer, Hothorn &
Lehmacher 1995; Westfall & Krishen 2001), at each look (Maurer & Bretz 2013). So BETTER and all guardrails together err
with at most half of the comparison's share of alpha; the other half is that of WORSE. In a plan that claims that a
group is not worse, BETTER comes after the guardrails in this sequence.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from esper_ab.design.design import Design
from esper_ab.design.guardrails import Guardrail
from esper_ab.verdict.guardrail_look import GuardrailLook, equal_look, guardrail_look
from esper_ab.verdict.looks import ComparisonProgress
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.verdict import Verdict

_BETTER = (Verdict.BETTER, Verdict.BETTER_BELOW_MARGIN)
_NOT_WORSE = (*_BETTER, Verdict.NOT_WORSE, Verdict.WORSE_BELOW_MARGIN)


class GuardrailResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one guardrail."""

    guardrail: Guardrail
    look: GuardrailLook  # at the last look of the comparison
    result: Literal["holds", "not shown", "not tested"]  # not tested: the claim, or an earlier guardrail, was not shown


def after_guardrails(design: Design, progress: ComparisonProgress, pairing: Pairing, verdict: Verdict) -> Verdict:
    """Return the verdict: NOT WORSE in place of BETTER, if the plan claims that and a guardrail does not hold."""
    if design.non_inferiority is None or verdict not in _BETTER:
        return verdict
    results = guardrail_results(design, progress, pairing, verdict)
    return Verdict.NOT_WORSE if any(item.result != "holds" for item in results) else verdict


def guardrail_results(
    design: Design, progress: ComparisonProgress, pairing: Pairing, verdict: Verdict
) -> tuple[GuardrailResult, ...]:
    """Test all guardrails at the last look of a comparison with this verdict; () without guardrails or a look.

    After IDENTICAL, measures in the records are equal and need no look.
    """
    guards = design.guards
    if guards is None or not pairing.guardrails:
        return ()
    is_identical = verdict is Verdict.IDENTICAL
    if progress.last is None and not (is_identical and guards.recorded):
        return ()
    is_tested = admits_guardrails(design, verdict)
    results = []
    for guardrail, guarded_runs in zip(guards.items, pairing.guardrails, strict=True):
        if is_identical and guardrail.recorded:
            look = equal_look(guardrail, guarded_runs, pairing.lost)
        else:
            assert progress.last is not None, "there is a look, unless all measures are recorded"
            look = guardrail_look(design, guardrail, progress.last.replicates, guarded_runs, pairing.lost)
        result: Literal["holds", "not shown", "not tested"] = "not tested"
        if is_tested:
            result = "holds" if look.holds else "not shown"
            is_tested = look.holds
        results.append(GuardrailResult(guardrail=guardrail, look=look, result=result))
    return tuple(results)


def admits_guardrails(design: Design, verdict: Verdict) -> bool:
    """True if guardrails are tested after a verdict: the claim of the plan, or equal records."""
    claims = _BETTER if design.non_inferiority is None else _NOT_WORSE
    return verdict is Verdict.IDENTICAL or verdict in claims
