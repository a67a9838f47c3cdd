"""Moderated variances in a design: their prior, and their description. Pure.

The formulas are in `stats/moderated_variance.py`.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from esper_ab.contracts.settings import PositiveInt, Settings, Variances


class ModeratedVariances(Settings, frozen=True, kw_only=True):
    """Each comparison's variance is shrunk to the mean of those in the same task."""

    prior_df: PositiveInt  # as which the mean counts


def moderation(asked_variances: Variances, comparisons: int) -> ModeratedVariances | UnsetType:
    """Return the moderation of a number of comparisons in each task, at least 2; UNSET for own variances."""
    if asked_variances == "own":
        return UNSET
    from esper_ab.stats.prior_df import prior_df  # `status` does not need it

    return ModeratedVariances(prior_df=prior_df(comparisons))


def prior_df_of(variances: ModeratedVariances | UnsetType) -> int:
    """Return the prior degrees of freedom; 0: each comparison has its own variance."""
    return 0 if isinstance(variances, UnsetType) else variances.prior_df


def moderation_words(prior_degrees: int, *, several_tasks: bool = False) -> str:
    """Describe moderated variances in a clause."""
    degrees = "degree" if prior_degrees == 1 else "degrees"
    group_words = "those in its task" if several_tasks else "all"
    return (
        f"variances are moderated: that of each comparison is shrunk to the mean of {group_words}, which counts as "
        f"{prior_degrees} {degrees} of freedom"
    )
