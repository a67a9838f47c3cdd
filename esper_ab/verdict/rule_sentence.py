"""The sentence that describes the rule of a design, for plans and reports. Pure."""

from __future__ import annotations

from esper_ab.design.design import Design, rule, test_words
from esper_ab.stats.exact_signs import BACKED, BACKED_BY_SIGNS
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_OPEN_ENDED_PAIRS, LEAST_PAIRS, smallest_p


def rule_sentence(design: Design, test: str = "") -> str:
    """Describe the rule of a design for the reader of a report; `test` as for `rule`."""
    if not design.comparisons:
        return "None, because one group is compared with nothing."
    if not design.boundaries and design.anytime_after is None:
        return f"No claim can follow from this plan: a verdict needs at least {LEAST_PAIRS} seeds."
    if design.outcome_over == "given":
        losses_words = "Lost runs" if design.unit == "seed" else "Lost outcomes"
        caps = f"{losses_words} can cap a verdict."
    else:
        caps = "The audit and lost runs can block or cap a verdict."
    exact_alone = test and test_words(design) not in test
    signs = "" if exact_alone else _signs_rule(design)
    if design.non_inferiority is not None:
        return f"{rule(design, test)}. {_claims_of_non_inferiority(design, signs)} Otherwise INCONCLUSIVE. {caps}"
    return (
        f"{rule(design, test)}. BETTER or WORSE if that bound is reached{signs}. EQUIVALENT (BELOW MARGIN "
        f"after BETTER or WORSE) if {_looks_for_small(design)} the interval lies within +-{design.margin_words}. "
        f"Otherwise INCONCLUSIVE. {caps}"
    )


def _claims_of_non_inferiority(design: Design, signs: str) -> str:
    """Say when a plan that asks whether a group is not worse makes which claim."""
    pairs = "pairs" if design.paired else "runs per group"
    times = []
    if design.looks:
        times.append(f"with {LEAST_EQUIVALENCE_PAIRS} {pairs} or more")
    if design.anytime_after is not None:
        after_looks = " after the planned looks" if design.looks else ""
        times.append(f"from {LEAST_OPEN_ENDED_PAIRS} {pairs} on{after_looks}")
    return (
        f"NOT WORSE if, {' or '.join(times)}, the one-sided test at the margin of {design.margin_words} reaches its "
        f"bound. BETTER or WORSE if the two-sided bound is reached{signs}; WORSE, BELOW MARGIN if both are."
    )


def _signs_rule(design: Design) -> str:
    """Say at how many pairs a claim also needs the exact sign-flip test; "" if the design has no such look."""
    looks_with_signs = [look for look in design.looks if look in BACKED_BY_SIGNS]
    if design.test != "t" or not looks_with_signs:
        return ""
    share = design.alpha / len(design.comparisons)
    agreement_words = f" and, with {BACKED}, the exact sign-flip test agrees"
    if any(smallest_p(look) > share for look in looks_with_signs):
        return f"{agreement_words}, unless so few pairs can never reach that comparison's share of alpha"
    return agreement_words


def _looks_for_small(design: Design) -> str:
    """Say at which looks a difference may be called smaller than the margin, as in "at the last look, with ..."."""
    if design.test in ("mcnemar", "z"):
        unit_words = f"{design.unit}s"
    else:
        unit_words = "pairs" if design.paired else "runs per group"
    number_words = f"with {LEAST_EQUIVALENCE_PAIRS} {unit_words} or more"
    times = []
    if len(design.looks) > 1:
        times.append(f"at the last look, {number_words},")
    elif design.looks:
        times.append(number_words)
    if design.anytime_after is not None:
        times.append(f"from {LEAST_OPEN_ENDED_PAIRS} pairs on")
    return " or ".join(times)
