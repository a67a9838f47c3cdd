"""The price of `--shape any` in words: what a plan's seeds can show, and the seeds that its margin takes. Pure."""

from __future__ import annotations

from collections.abc import Callable

from esper_ab.contracts.wording import significant
from esper_ab.design import any_shape, pairs_needed
from esper_ab.design.design import Design
from esper_ab.design.pairs_needed import MOST_NAMED

Cost = Callable[[int], str]  # words the duration of a number of seeds


def price_line(design: Design, sd: float | None = None, cost: Cost | None = None) -> str:
    """Say what claims for any shape cost a plan; "" for another plan, and for one that decides nothing.

    `sd` is that of the differences, if it is known.
    """
    if not design.any_shape or not (design.boundaries or design.anytime_after is not None):
        return ""
    outcome = design.outcome
    possible = f"outcomes from {design.worst:g} to {outcome.value(f'{outcome.best_possible:g}')}"
    option_words = f"With --shape any ({possible}), "
    if not design.looks or design.non_inferiority is not None or sd:  # then another sentence has the least difference
        return f"{option_words}{_seeds_for_margin(design, sd, cost)}"
    for_margin = _seeds_for_margin(design, sd, cost)
    return f"{option_words}{_least_difference(design)} {for_margin[0].upper()}{for_margin[1:]}"


def seeds_needed(design: Design, sd: float, columns: int = 1) -> int:
    """Return the seeds with which the claim of the design has 80 % power, for any shape if the design asks for it.

    A difference of the margin is to be found, or groups that do not differ are to be shown to be not worse.
    """
    fewest = _seeds_for_t_test(design, sd, columns)
    if not design.any_shape:
        return fewest
    return max(fewest, any_shape.seeds_for_any_shape(design, _share(design), sd))


def _seeds_for_t_test(design: Design, sd: float, columns: int = 1) -> int:
    sides = 1.0 if design.non_inferiority is None else 2.0  # a one-sided claim has the power of a test at twice alpha
    return pairs_needed.fewest_pairs(sd, design.margin, sides * _share(design), columns)


def _share(design: Design) -> float:
    return design.alpha / len(design.comparisons)


def _least_difference(design: Design) -> str:
    """Say which differences the seeds can show at best, if runs hardly vary."""
    seeds = f"{design.looks[-1]} {design.unit}s"
    evidence = any_shape.required_evidence(_share(design))
    difference = any_shape.smallest_difference(0.0, design.looks[-1], design.largest_difference(), evidence)
    if difference is None:
        return f"{seeds} can show no difference at all."
    size = design.outcome.difference(significant(difference))
    return f"{seeds} find only differences of {size} or more, even if runs hardly vary."


def _seeds_for_margin(design: Design, sd: float | None, cost: Cost | None) -> str:
    margin = design.margin_words
    claim_words = f"a difference of {margin}, the margin, takes"
    if design.non_inferiority is not None:
        claim_words = f"showing that a group is not worse by {margin} takes"
    if not sd:  # if runs did not vary at all
        least_seeds = any_shape.seeds_for_any_shape(design, _share(design), 0.0)
        bound_words = "at least " if least_seeds <= MOST_NAMED else ""
        return f"{claim_words} {bound_words}{_named(least_seeds)} {design.unit}s."
    seeds = seeds_needed(design, sd)
    about_words = "about " if seeds <= MOST_NAMED else ""
    time_words = "" if cost is None or seeds > MOST_NAMED else f" ({cost(seeds)})"
    seeds_if_same = _named(_seeds_for_t_test(design, sd))
    return f"{claim_words} {about_words}{_named(seeds)} {design.unit}s{time_words} instead of {seeds_if_same}."


def _named(seeds: int) -> str:
    return str(seeds) if seeds <= MOST_NAMED else f"more than {MOST_NAMED:,}"
