"""The sentences on what an open comparison waits for: its next look, and the pairs that a clear answer takes. Pure."""

from __future__ import annotations

from esper_ab.design.pairs_needed import MOST_NAMED, PairsNeeded
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.evidence import Evidence


def looks_to_come(evidence: Evidence) -> list[int]:
    """Return the planned looks not yet taken, in replicates."""
    last_replicates = evidence.last_look.replicates if evidence.last_look is not None else 0
    return [look for look in evidence.design.looks if look > last_replicates]


def next_look(evidence: Evidence) -> str:
    """Name the next look that can decide an open comparison; "" if none is left."""
    design = evidence.design
    if evidence.progress.finished:
        return ""
    open_looks = looks_to_come(evidence)
    if open_looks and open_looks[-1] >= LEAST_PAIRS:
        number = f"look {design.looks.index(open_looks[0]) + 1} of {len(design.looks)}"
        return f"It can be decided after {open_looks[0]} seeds ({number}), not before."
    if design.anytime_after is None:
        return ""
    from_words = f" from the {LEAST_PAIRS}th on" if len(evidence.pairs) < LEAST_PAIRS else ""
    return f"It can be decided after every further pair{from_words}."


def pairs_for_an_answer(evidence: Evidence) -> str:
    """Write how many pairs a clear answer takes, and whether the plan can still reach them."""
    extension_need = evidence.pairs_needed
    most_pairs = evidence.most_pairs
    complete_pairs = len(evidence.pairs)
    design = evidence.design
    if extension_need is None or evidence.progress.standing == "futile":
        return ""
    if extension_need.pairs <= complete_pairs:
        aim = f"detect {design.margin_words}"
        if design.non_inferiority is not None:
            aim = f"show {evidence.aim}, if the groups do not differ,"
        return f"{evidence.counted(complete_pairs)} suffice to {aim} with 80 % power."
    cost = _cost(evidence, extension_need, complete_pairs)
    if most_pairs is None or extension_need.pairs <= most_pairs or not evidence.question.declared:
        return cost
    beyond_words = f"{cost} This plan cannot reach that number"
    if evidence.smallest_resolvable is None:
        return f"{beyond_words}."
    smallest = design.size(evidence.smallest_resolvable)
    if design.non_inferiority is not None:
        return f"{beyond_words}; the smallest margin at which it can show that is {smallest}."
    return f"{beyond_words}; the smallest difference it can detect is {smallest}."


def _cost(evidence: Evidence, extension_need: PairsNeeded, complete_pairs: int) -> str:
    """Write how many more pairs are needed, and how many in a new plan if its less strict bound needs fewer."""
    count = _more_pairs(extension_need, complete_pairs)
    range_words = _range_of_more_pairs(extension_need, complete_pairs)
    new_plan_need = evidence.pairs_anew
    aim = f"Detecting {evidence.design.margin_words}"
    if evidence.design.non_inferiority is not None:
        aim = f"Showing {evidence.aim}, if the groups do not differ,"
    detection_words = f"{aim} with 80 % power takes {count} more {evidence.worded('pairs')}"
    if new_plan_need is None or new_plan_need.pairs >= extension_need.pairs:
        return f"{detection_words}{_bracket(range_words)}."
    price = f"an extension requires p <= {extension_need.alpha:.2g}"
    details = f"{range_words}; {price}" if range_words else price
    extension_words = f"{detection_words} with `esper-ab resume --seeds` ({details})"
    return (
        f"{extension_words}, or {_more_pairs(new_plan_need, 0)} in a new "
        f"plan{_bracket(_range_of_more_pairs(new_plan_need, 0))}."
    )


def _more_pairs(pairs_needed: PairsNeeded, complete_pairs: int) -> str:
    """Write how many pairs are missing if `complete_pairs` exist."""
    if pairs_needed.pairs > MOST_NAMED:
        return f"more than {MOST_NAMED}"
    return f"about {pairs_needed.pairs - complete_pairs}"


def _range_of_more_pairs(pairs_needed: PairsNeeded, complete_pairs: int) -> str:
    """Write the 80 % range of the number of missing pairs; "" if so many are needed that none is named."""
    if pairs_needed.pairs > MOST_NAMED:
        return ""
    low = max(0, pairs_needed.low - complete_pairs)
    if pairs_needed.high > MOST_NAMED:
        return f"80 % range {low} to more than {MOST_NAMED}"
    return f"80 % range {low} to {max(0, pairs_needed.high - complete_pairs)}"


def _bracket(text: str) -> str:
    return f" ({text})" if text else ""
