"""The sentences on a comparison, written from its evidence; this module computes and decides nothing. Pure."""

from __future__ import annotations

from esper_ab.contracts.wording import n_pairs
from esper_ab.design.design import Design, rule
from esper_ab.design.pairs_needed import MOST_NAMED, PairsNeeded
from esper_ab.stats.exact_signs import BACKED, BACKED_BY_SIGNS
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS, LEAST_OPEN_ENDED_PAIRS, LEAST_PAIRS, smallest_p
from esper_ab.stats.pair import outcomes
from esper_ab.stats.rounding import alike
from esper_ab.stats.text import digits_apart, p_beside, p_text, percent, signed
from esper_ab.verdict.evidence import DifferenceInterval, Evidence
from esper_ab.verdict.verdict import CLAIMS, Verdict

_NO_DIFFERENCE = (
    "their settings differ, but these runs never depended on the difference. Longer training may separate them, or "
    "this task never uses the differing settings."
)
_CAPPED = ("The audit and lost runs can block or cap a verdict.", "Lost runs can cap a verdict.")


def interval(evidence: Evidence) -> str:
    """Return "95 % repeated interval -0.40 to +3.20", or "no interval"."""
    return limits_text((evidence.low, evidence.high, evidence.level), evidence.design)


def limits_text(limits: DifferenceInterval, design: Design) -> str:
    """Return limits with their level, as in "95 % repeated interval -0.40 to +3.20", or "no interval"."""
    low, high, level = limits
    if low is None or high is None:
        return "no interval"
    return f"{level} {span(low, high, design)}"


def span(low: float, high: float, design: Design) -> str:
    """Return limits, as in "-0.40 to +3.20", with enough decimals to keep each on its side of 0 and of the margin."""
    digits = digits_apart((low, high), (-design.margin, 0.0, design.margin), design.digits)
    return f"{signed(low, digits)} to {signed(high, digits)}"


def rule_sentence(design: Design) -> str:
    """Describe the rule of a design for the reader of a report."""
    if not design.comparisons:
        return "None, because one group is compared with nothing."
    if not design.boundaries and design.anytime_after is None:
        return f"No claim can follow from this plan: a verdict needs at least {LEAST_PAIRS} seeds."
    return (
        f"{rule(design)}. BETTER or WORSE if that bound is reached{_signs(design)}. EQUIVALENT (BELOW MARGIN after "
        f"BETTER or WORSE) if {_when_small(design)} the interval lies within +-{design.margin_words}. Otherwise "
        f"INCONCLUSIVE. {_CAPPED[design.outcome_over == 'given']}"
    )


def _signs(design: Design) -> str:
    """Say at how many pairs a claim also needs the exact sign-flip test; "" if the design has no such look."""
    backed = [look for look in design.looks if look in BACKED_BY_SIGNS]
    if design.test != "t" or not backed:
        return ""
    share = design.alpha / len(design.comparisons)
    never = any(smallest_p(look) > share for look in backed)
    if never:
        unless = ", unless so few pairs can never reach that comparison's share of alpha"
    else:
        unless = ""
    return f" and, with {BACKED}, the exact sign-flip test agrees{unless}"


def _when_small(design: Design) -> str:
    """Say at which looks a difference may be called smaller than the margin, as in "at the last look, with ..."."""
    later = "" if design.anytime_after is None else f"from {LEAST_OPEN_ENDED_PAIRS} pairs on"
    of = "pairs" if design.test == "t" else "runs per group"
    planned = f"with {LEAST_EQUIVALENCE_PAIRS} {of} or more" if design.looks else ""
    planned = f"at the last look, {planned}," if len(design.looks) > 1 else planned
    return " or ".join(part for part in (planned, later) if part)


def _early(evidence: Evidence) -> str:
    """Say from when the difference could be claimed to be smaller than the margin."""
    if evidence.small_from:
        return f"Calling it smaller than the margin takes {evidence.small_from}."
    return ""


def sentence(evidence: Evidence) -> str:
    """Write the verdict and the numbers that it rests on; `headline` is the plain version."""
    verdict = evidence.verdict
    question = evidence.question
    a = question.a
    b = question.b
    n = evidence.counted(len(evidence.pairs))
    if verdict is Verdict.BLOCKED:
        why = " ".join(finding.sentence for finding in evidence.findings if finding.weight == "blocks")
        return f"BLOCKED ({n}). {why} There is no verdict on {a} and {b}."
    if verdict is Verdict.NO_INFERENCE and len(evidence.data) < 2 and (evidence.pairs or evidence.estimate is None):
        return _no_inference(evidence)
    if verdict is Verdict.IDENTICAL:
        why = "the same computation." if question.same_settings else _NO_DIFFERENCE
        return f"IDENTICAL ({n}). All records of {a} and {b} agree: {why} No test applies."
    undecided = verdict in (Verdict.NO_INFERENCE, Verdict.INCONCLUSIVE)
    said = _undecided(evidence) if undecided else _decided(evidence)
    return f"{said} Conditional on {question.scope}."


def _head(evidence: Evidence) -> str:
    assert evidence.estimate is not None
    design = evidence.design
    margin = design.margin
    lower = "" if design.outcome.sign > 0.0 else " (lower is better)"
    marks = (-margin, 0.0, margin) if evidence.verdict in CLAIMS else ()
    digits = digits_apart((evidence.estimate,), marks, design.digits)
    return f"{evidence.question.a} - {evidence.question.b} = {design.difference(evidence.estimate, digits)}{lower}"


def _no_inference(evidence: Evidence) -> str:
    a = evidence.question.a
    b = evidence.question.b
    if evidence.estimate is None:
        yet = " yet" if len(evidence.lost.replicates) < evidence.question.planned else ""
        none = f"no complete pair{yet}" if evidence.design.test == "t" else "a group without runs"
        return f"NO INFERENCE ({none}). Nothing can be said about {a} and {b}."
    sd = evidence.question.run_sd
    design = evidence.design
    how = f" (--seeds {LEAST_PAIRS})" if evidence.question.recorded else ""
    if sd is None:
        spread = "The spread between runs of one group is unknown without a calibration"
    else:
        spread = f"Runs of one group have a standard deviation of about {design.size(sd)} (calibration)"
    return (
        f"NO INFERENCE (1 pair). {_head(evidence)}. These are two runs. {spread}. "
        f"A verdict needs at least {LEAST_PAIRS} pairs{how}."
    )


def _decided(evidence: Evidence) -> str:
    question = evidence.question
    n = evidence.counted(evidence.used)
    margin = question.design.margin_words
    numbers = f"{_head(evidence)}, {interval(evidence)}, {_test(evidence)}{_when(evidence)}{_of_last(evidence)}."
    if evidence.verdict is Verdict.EQUIVALENT:
        tost = f" (TOST p {p_text(evidence.equivalence.p)})" if evidence.equivalence else ""
        return (
            f"EQUIVALENT within +-{margin} ({n}). {numbers} A difference of the margin or more is rejected in "
            f"both directions{tost}."
        )
    said = f"{evidence.verdict} ({n}). {numbers}"
    if evidence.verdict in (Verdict.BETTER, Verdict.WORSE):
        return f"{said} {early}" if (early := _early(evidence)) else said
    several = len(question.design.comparisons) > 1
    at_once = f" ({limits_text(evidence.simultaneous, question.design)})" if several else ""
    return f"{said} There is a difference, smaller than the margin of {margin}{at_once}."


def _test(evidence: Evidence) -> str:
    """Write the deciding statistic of the last look, with its bound."""
    look = evidence.last_look
    kind = evidence.test
    if look is not None and look.bound_e is not None:
        reached = "no e-value" if look.e is None else f"e-value {look.e:.3g}"
        return f"{reached} ({look.bound_e:g} required)"
    if look is not None:
        p = look.p
    elif evidence.effect:
        p = evidence.effect.p
    else:
        p = None
    if p is None:
        return f"no {kind}"
    if look is None or look.bound_p is None:
        return f"{kind} p {p_text(p)}"
    reached, bound = p_beside(p, look.bound_p)
    return f"{kind} p {reached} ({bound} required)"


def _when(evidence: Evidence) -> str:
    """Name the look that decided the comparison; "" in a design with a single look."""
    at = evidence.course.decided_at
    design = evidence.design
    if at is None or (len(design.looks) < 2 and design.anytime_after is None):
        return ""
    return f", decided {_after(design, at)}"


def _of_last(evidence: Evidence) -> str:
    """Say that the numbers are from a look after the deciding one; "" if they are not."""
    at = evidence.course.decided_at
    look = evidence.last_look
    if look is None or at in (None, look.replicates):
        return ""
    return f"; these numbers and their bound are from the look {_after(evidence.design, look.replicates)}"


def _after(design: Design, replicates: int) -> str:
    looks = design.looks
    number = f" (look {looks.index(replicates) + 1} of {len(looks)})" if replicates in looks else ""
    return f"after {replicates} seeds{number}"


def _undecided(evidence: Evidence) -> str:
    finished = evidence.course.finished
    planned = "" if finished or evidence.most_pairs is None else f" of {evidence.question.planned}"
    so_far = "" if finished else " so far"
    if planned:
        there = f"{len(evidence.pairs)}{planned} pairs"
    else:
        there = evidence.counted(len(evidence.pairs))
    said = f"{evidence.verdict}{so_far} ({there}). "
    if evidence.estimate is None:
        said += "At the last look no pair was complete."
    else:
        if evidence.used == len(evidence.data):
            at = ""
        else:
            at = f"At the last look, with {n_pairs(evidence.used)}: "
        said += f"{at}{_head(evidence)}{_shown(evidence)}"
    if evidence.unaudited not in (Verdict.NO_INFERENCE, Verdict.INCONCLUSIVE) and evidence.capped_by:
        alone = f"From the {evidence.worded('pairs')} alone the verdict would be {evidence.unaudited}"
        return f"{said} {alone}, but: {' '.join(evidence.capped_by)}"
    signs = f"{evidence.lacking_signs.capitalize()}." if evidence.lacking_signs else ""
    why = (signs, _withdrawn(evidence), _ruled_out(evidence), _early(evidence))
    parts = (said, *why, _next_look(evidence), _more(evidence))
    return " ".join(part for part in parts if part)


def _withdrawn(evidence: Evidence) -> str:
    """Explain an open comparison whose boundary was reached at an earlier look."""
    course = evidence.course
    if course.decision == course.standing:
        return ""
    what = "The boundary was crossed" if course.decision == "crossed" else "Equivalence was shown"
    return f"{what}{_when(evidence).removeprefix(', decided')}, but the last look no longer shows it."


def _ruled_out(evidence: Evidence) -> str:
    """Name the kind of INCONCLUSIVE and the differences that the interval excludes; "" if there is no such kind."""
    if evidence.inconclusive is None:
        return ""
    beyond = ""
    design = evidence.design
    if evidence.low is not None and evidence.high is not None:
        beyond = f" the interval excludes differences beyond {design.size(max(abs(evidence.low), abs(evidence.high)))}"
    if evidence.inconclusive == "bounded":
        return f"Bounded:{beyond}."
    if evidence.inconclusive == "futile":
        return _stopped(evidence, beyond)
    whose = "this plan" if evidence.question.declared else "these pairs"
    reach = f"Uninformative: {whose} could not have shown a difference of {design.margin_words}"
    return f"{reach};{beyond}." if beyond else f"{reach}."


def _stopped(evidence: Evidence, beyond: str) -> str:
    """Write why a look stopped a comparison for futility, with the interval used."""
    design = evidence.design
    at = _when(evidence).removeprefix(", decided")
    within = f"the {limits_text(evidence.futility, design)} lies inside +-{design.margin_words}"
    said = f"Stopped for futility{at}: {within}, so a difference that large is unlikely; this claims nothing"
    return f"{said}, but{beyond}." if beyond else f"{said}."


def _shown(evidence: Evidence) -> str:
    """Write the result so far of an open comparison, and which results cannot come from so few runs."""
    n = evidence.counted(evidence.used)
    same = alike(*outcomes(evidence.pairs[: evidence.used]))
    constant = evidence.degenerate and same == evidence.used
    if evidence.used < LEAST_PAIRS:
        shown = f". If the differences are normal, {interval(evidence)}; this assumption cannot be checked with {n}."
        if evidence.low is None:
            shown = f" in all {n}: without spread there is no interval." if constant else "."
        elif evidence.plain is None:
            shown = f", {interval(evidence)}, {_test(evidence)}."
        alpha = evidence.design.alpha
        least = smallest_p(evidence.used)
        so = f", so no verdict at {percent(alpha)} can be given" if least > alpha else ""
        if evidence.pairs:
            exact = f" The strongest exact result possible with {n} is p = {least:.2g}{so}."
        else:
            exact = ""
        return shown + exact + evidence.worded(f" A verdict needs at least {LEAST_PAIRS} pairs.")
    lacking = "no test, no interval and no verdict"
    if evidence.constant:
        return (
            f": every pair differs by {evidence.constant}, so no test of a mean applies; this is the answer for these "
            "seeds."
        )
    if constant:
        return f" in every pair: without spread there is {lacking}."
    if evidence.degenerate and evidence.plain is not None and evidence.plain.degenerate:
        few = f"fewer than {LEAST_PAIRS} by another"
        return f". {same} of {n} differ by the same amount and {few}: there is {lacking}."
    last = evidence.last_look
    if (last.mean is None) if last is not None else evidence.effect is None:
        return ", not adjusted: group and order cannot be separated in these pairs, so the look decides nothing."
    if evidence.effect is not None and evidence.effect.degenerate:
        if evidence.pairs:
            little = "apart from device and order nothing varies between pairs"
        else:
            little = "too little varies"
        return f": {little}, so there is {lacking}."
    if evidence.low is None:
        return f", {_test(evidence)}; at this bound {n} give no interval."
    return f", {interval(evidence)}, {_test(evidence)}."


def _next_look(evidence: Evidence) -> str:
    """Name the next look that can decide an open comparison; "" if none is left."""
    course = evidence.course
    design = evidence.design
    if course.finished:
        return ""
    coming = looks_to_come(evidence)
    if coming and coming[-1] >= LEAST_PAIRS:
        number = f"look {design.looks.index(coming[0]) + 1} of {len(design.looks)}"
        return f"It can be decided after {coming[0]} seeds ({number}), not before."
    if design.anytime_after is None:
        return ""
    since = f" from the {LEAST_PAIRS}th on" if len(evidence.pairs) < LEAST_PAIRS else ""
    return f"It can be decided after every further pair{since}."


def looks_to_come(evidence: Evidence) -> list[int]:
    """Return the planned looks not yet taken, in replicates."""
    taken = evidence.last_look.replicates if evidence.last_look is not None else 0
    return [look for look in evidence.design.looks if look > taken]


def _more(evidence: Evidence) -> str:
    """Write how many pairs a clear answer takes, and whether the plan can still reach them."""
    needed = evidence.pairs_needed
    most = evidence.most_pairs
    there = len(evidence.pairs)
    design = evidence.design
    if needed is None or evidence.course.standing == "futile":
        return ""
    if needed.pairs <= there:
        return f"{n_pairs(there)} suffice to detect {design.margin_words} with 80 % power."
    said = _cost(evidence, needed, there)
    if most is None or needed.pairs <= most or not evidence.question.declared:
        return said
    said = f"{said} This plan cannot reach that number"
    if evidence.smallest_resolvable is None:
        return f"{said}."
    return f"{said}; the smallest difference it can detect is {design.size(evidence.smallest_resolvable)}."


def _cost(evidence: Evidence, needed: PairsNeeded, there: int) -> str:
    """Write how many more pairs are needed, and how many in a new plan if its less strict bound needs fewer."""
    count, between = _about(needed, there)
    anew = evidence.pairs_anew
    detect = f"Detecting {evidence.design.margin_words} with 80 % power takes {count} more pairs"
    if anew is None or anew.pairs >= needed.pairs:
        return f"{detect}{f' ({between})' if between else ''}."
    price = f"an extension requires p <= {needed.alpha:.2g}"
    fresh, fresh_between = _about(anew, 0)
    said = f"{detect} with `esper-ab resume --seeds` ({'; '.join(part for part in (between, price) if part)})"
    return f"{said}, or {fresh} in a new plan{f' ({fresh_between})' if fresh_between else ''}."


def _about(needed: PairsNeeded, there: int) -> tuple[str, str]:
    """Return how many pairs are missing if `there` exist, and the 80 % range of that number; "" above MOST_NAMED."""
    if needed.pairs > MOST_NAMED:
        return f"more than {MOST_NAMED}", ""
    if needed.high <= MOST_NAMED:
        high = f"{max(0, needed.high - there)}"
    else:
        high = f"more than {MOST_NAMED}"
    return f"about {needed.pairs - there}", f"80 % range {max(0, needed.low - there)} to {high}"
