"""The sentences on what an open comparison waits for: its next look, and the pairs that a clear answer takes. Pure."""

from __future__ import annotations

from esper_ab.design.pairs_needed import MOST_NAMED, PairsNeeded
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.evidence import Evidence


def looks_to_come(evidence: Evidence) -> list[int]:
    """Return the planned looks not yet taken, in replicates."""
    taken = evidence.last_look.replicates if evidence.last_look is not None else 0
    return [look for look in evidence.design.looks if look > taken]


def next_look(evidence: Evidence) -> str:
    """Name the next look that can decide an open comparison; "" if none is left."""
    design = evidence.design
    if evidence.progress.finished:
        return ""
    coming = looks_to_come(evidence)
    if coming and coming[-1] >= LEAST_PAIRS:
        number = f"look {design.looks.index(coming[0]) + 1} of {len(design.looks)}"
        return f"It can be decided after {coming[0]} seeds ({number}), not before."
    if design.anytime_after is None:
        return ""
    since = f" from the {LEAST_PAIRS}th on" if len(evidence.pairs) < LEAST_PAIRS else ""
    return f"It can be decided after every further pair{since}."


def pairs_for_an_answer(evidence: Evidence) -> str:
    """Write how many pairs a clear answer takes, and whether the plan can still reach them."""
    needed = evidence.pairs_needed
    most = evidence.most_pairs
    done = len(evidence.pairs)
    design = evidence.design
    if needed is None or evidence.progress.standing == "futile":
        return ""
    if needed.pairs <= done:
        return f"{evidence.counted(done)} suffice to detect {design.margin_words} with 80 % power."
    cost = _cost(evidence, needed, done)
    if most is None or needed.pairs <= most or not evidence.question.declared:
        return cost
    beyond = f"{cost} This plan cannot reach that number"
    if evidence.smallest_resolvable is None:
        return f"{beyond}."
    return f"{beyond}; the smallest difference it can detect is {design.size(evidence.smallest_resolvable)}."


def _cost(evidence: Evidence, needed: PairsNeeded, done: int) -> str:
    """Write how many more pairs are needed, and how many in a new plan if its less strict bound needs fewer."""
    count = _more_pairs(needed, done)
    between = _range_of_more_pairs(needed, done)
    anew = evidence.pairs_anew
    detect = f"Detecting {evidence.design.margin_words} with 80 % power takes {count} more {evidence.worded('pairs')}"
    if anew is None or anew.pairs >= needed.pairs:
        return f"{detect}{_bracket(between)}."
    price = f"an extension requires p <= {needed.alpha:.2g}"
    details = f"{between}; {price}" if between else price
    extended = f"{detect} with `esper-ab resume --seeds` ({details})"
    return f"{extended}, or {_more_pairs(anew, 0)} in a new plan{_bracket(_range_of_more_pairs(anew, 0))}."


def _more_pairs(needed: PairsNeeded, done: int) -> str:
    """Write how many pairs are missing if `done` exist."""
    if needed.pairs > MOST_NAMED:
        return f"more than {MOST_NAMED}"
    return f"about {needed.pairs - done}"


def _range_of_more_pairs(needed: PairsNeeded, done: int) -> str:
    """Write the 80 % range of the number of missing pairs; "" if so many are needed that none is named."""
    if needed.pairs > MOST_NAMED:
        return ""
    low = max(0, needed.low - done)
    if needed.high > MOST_NAMED:
        return f"80 % range {low} to more than {MOST_NAMED}"
    return f"80 % range {low} to {max(0, needed.high - done)}"


def _bracket(text: str) -> str:
    return f" ({text})" if text else ""
