"""The sentences of a comparison. Only words: every number is handed in, nothing is decided here."""

from __future__ import annotations

from esper_ab.stats.paired_difference import PairedDifference
from esper_ab.stats.pairs_needed import PairsNeeded
from esper_ab.stats.sign_flip import SignFlip, smallest_p
from esper_ab.stats.verdict import LEAST_PAIRS, Verdict

_MANY = 10_000


def points(value: float) -> str:
    """A signed difference of accuracies: "+1.20", "-0.35", "0.00"."""
    text = f"{value:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text


def percent(level: float) -> str:
    """ "95 %", "98.3 %"."""
    return f"{100 * level:.3g} %"


def p_text(p: float) -> str:
    """p with the digits that matter, never 0."""
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}" if p < 0.1 else f"= {p:.2f}"


def n_pairs(count: int) -> str:
    """ "1 pair", "6 pairs"."""
    return f"{count} pair" if count == 1 else f"{count} pairs"


def interval(difference: PairedDifference) -> str:
    """ "95 % interval -0.40 to +3.20"; says so when there is none."""
    if difference.low is None or difference.high is None:
        return "no interval"
    return f"{percent(difference.level)} interval {points(difference.low)} to {points(difference.high)}"


def needed_sentence(needed: PairsNeeded) -> str:
    """How much a clear answer costs."""
    if needed.pairs > _MANY:
        return f"To detect {needed.margin:g} points with 80 % power more than {_MANY} pairs would be needed."
    high = f"{needed.high}" if needed.high <= _MANY else f"more than {_MANY}"
    return (
        f"To detect {needed.margin:g} points with 80 % power about {needed.pairs} pairs would be needed "
        f"(80 % range {needed.low} to {high})."
    )


def sentence(
    verdict: Verdict,
    a: str,
    b: str,
    difference: PairedDifference | None,
    needed: PairsNeeded | None,
    *,
    same_records: bool,
) -> str:
    """The verdict in words, for a reader who reads nothing else."""
    if difference is None:
        return f"NO INFERENCE (no complete pair yet). Nothing can be said about {a} and {b}."
    head = f"{a} - {b} = {points(difference.mean)} points"
    n = n_pairs(difference.pairs)
    if verdict is Verdict.NO_INFERENCE:
        return (
            f"NO INFERENCE (1 pair). {head} between these two runs. How far apart two runs of one group fall is not "
            f"known from them, so nothing follows about the groups. A verdict needs at least {LEAST_PAIRS} pairs "
            f"(--replicates {LEAST_PAIRS})."
        )
    if verdict is Verdict.IDENTICAL:
        why = (
            "and so do their records: the same computation."
            if same_records
            else "though their records differ: other decisions, the same outcome."
        )
        return f"IDENTICAL ({n}). {a} and {b} agree exactly in every endpoint, {why} No test applies."
    if verdict in (Verdict.BETTER, Verdict.WORSE):
        assert difference.p is not None
        return f"{a} is {verdict} than {b} ({n}). {head}, {interval(difference)}, paired t p {p_text(difference.p)}."
    return f"INCONCLUSIVE ({n}). {head}{_why_inconclusive(difference, needed)}"


def _why_inconclusive(difference: PairedDifference, needed: PairsNeeded | None) -> str:
    more = f" {needed_sentence(needed)}" if needed else ""
    if difference.pairs < LEAST_PAIRS:
        spread = (
            f". If the differences are normal, {interval(difference)}; this assumption cannot be checked with "
            f"{n_pairs(difference.pairs)}."
            if difference.p is not None
            else f" in every one of the {n_pairs(difference.pairs)}: without any spread there is no interval."
        )
        return (
            f"{spread} The strongest exact result possible with {n_pairs(difference.pairs)} is "
            f"p = {smallest_p(difference.pairs):.2g}, so no verdict at 5 % can be given. "
            f"A verdict needs at least {LEAST_PAIRS} pairs.{more}"
        )
    if difference.p is None:
        return " in every pair: without any spread there is no t, no interval and no verdict."
    return f", {interval(difference)}, paired t p {p_text(difference.p)}.{more}"


def caveats(
    verdict: Verdict,
    difference: PairedDifference | None,
    flip: SignFlip | None,
    *,
    planned_pairs: int,
    alpha: float,
) -> tuple[str, ...]:
    """What a careful reader must know besides the verdict."""
    found: list[str] = []
    done = difference.pairs if difference else 0
    if done < planned_pairs:
        found.append(
            f"{done} of {planned_pairs} planned pairs are complete. A verdict is given at the planned number only: "
            f"looking early and stopping at a good moment raises the false alarms."
        )
    if difference and difference.no_variation and verdict is not Verdict.IDENTICAL:
        found.append("The difference is the same in every pair: look for a coarse or saturated outcome.")
    if flip and flip.p is None:
        found.append(f"The sign-flip p is not enumerated for {flip.pairs} pairs.")
    if verdict in (Verdict.BETTER, Verdict.WORSE) and flip and flip.p is not None and flip.p > alpha:
        found.append(
            f"The exact sign-flip test does not support this at {alpha:.3g} (p {p_text(flip.p)}): the verdict leans on "
            f"normally distributed differences."
        )
    return tuple(found)
