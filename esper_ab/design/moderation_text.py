"""What moderated variances would save in a plan that does not use them, in words. Pure."""

from __future__ import annotations

from esper_ab.contracts.wording import counted
from esper_ab.design.check import LEAST_SHARING
from esper_ab.design.design import Design
from esper_ab.design.pairs_needed import fewest_pairs, smallest_resolvable
from esper_ab.stats.prior_df import prior_df


def saved_seeds(design: Design) -> str:
    """Say with how many seeds less moderated variances would find the same differences; "" if they would save none.

    The numbers are those of one look, at each comparison's first share of alpha, for groups with equal spreads.
    """
    n_comparisons = len(design.comparisons)
    asks_difference = design.non_inferiority is None
    if n_comparisons < LEAST_SHARING or design.prior_df or not design.boundaries or design.anytime_after is not None:
        return ""
    seeds = design.looks[-1]
    columns = design.positions if design.adjusted else 1
    share = design.alpha / n_comparisons
    if not asks_difference:
        share *= 2.0
    difference = smallest_resolvable(1.0, seeds, share, columns)
    if difference is None:
        return ""
    fewer = fewest_pairs(1.0, difference, share, columns - prior_df(n_comparisons))
    if fewer >= seeds:
        return ""
    return (
        f"--variances moderated, which shares the variances of the {n_comparisons} comparisons, would find the same "
        f"differences with {fewer} instead of {counted(seeds, 'seed')}, if the runs of all groups vary alike."
    )
