"""The variance that the comparisons of a plan with moderated variances share at a look. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Design
from esper_ab.stats.adjusted_difference import AdjustedDifference, PriorVariance
from esper_ab.stats.moderated_variance import prior_of
from esper_ab.stats.pair import Data, before
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.look import own_effect
from esper_ab.verdict.observations import Observations


class SharingComparison(Protocol):
    """A comparison that may share its variance."""

    task: str
    design: Design  # with its own margin and outcome
    data: Data
    items: ComparedItems | None
    decided_at: int | None  # replicates


def priors_at(design: Design, replicates: int, comparisons: Iterable[SharingComparison]) -> dict[str, PriorVariance]:
    """Return the prior of each task at a look; {} if comparisons have their own variances.

    Only planned looks share variances. A comparison that was decided has the pairs before its decision. Comparisons
    with outcomes of 0 or 1, and those without a spread to test against, share nothing.
    """
    if not design.prior_df or replicates not in design.looks:
        return {}
    effects: dict[str, list[AdjustedDifference]] = {}
    for comparison in comparisons:
        end = replicates
        if design.early_stop and comparison.decided_at is not None:
            end = comparison.decided_at
        effect = own_effect(comparison.design, before(comparison.data, end), comparison.items)
        if isinstance(effect, AdjustedDifference) and not effect.name:
            effects.setdefault(comparison.task, []).append(effect)
    priors = {task: prior_of(of_task, design.prior_df) for task, of_task in effects.items()}
    return {task: prior for task, prior in priors.items() if prior is not None}


def refuse_items(design: Design, observations: Observations) -> None:
    """Raise UsageError if a plan with moderated variances is to judge rows of items, whose noise is not in a variance
    of pairs alone.
    """
    if design.prior_df and observations.items is not None:
        raise UsageError(
            f"{observations.source}: the plan moderates variances of runs, so it cannot use items below runs; give "
            "each run one row, with its mean"
        )
