"""Whether the groups are clearly apart from what they would reach without learning anything. Pure.

All groups that learn nothing end alike, so a missing difference shows nothing about them. In clinical trials, the
ability to show differences is called assay sensitivity (ICH E10). So nothing is called smaller than the margin unless
both groups are shown to be farther than the margin from every baseline: guessing, and the host that never grows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

from esper_ab.analysis.observe import ComparedPairs
from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import outcome_of
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS
from esper_ab.stats.paired_difference import paired_difference
from esper_ab.verdict.finding import Finding

_UNEVEN = 1.05  # factor on chance: always guessing the largest class scores more, because classes differ in size


def baseline_findings(history: History, pairs: ComparedPairs) -> Iterator[Finding]:
    """Yield at most one finding per comparison and baseline, once there are enough pairs for an equivalence."""
    chance = history.plan.chance
    bare_groups = [group.name for group in history.plan.experiment.groups if group.settings.controller.name == "wait"]
    for contrast in history.design.comparisons:
        used_replicates = [pair.replicate for pair in pairs[contrast]]
        if len(used_replicates) < LEAST_EQUIVALENCE_PAIRS:
            continue
        if chance is not None:
            guessed_outcomes = dict.fromkeys(used_replicates, chance * _UNEVEN)
            above_words = f"above guessing ({chance:.3g} %)"
            yield from _find_groups_near(
                history, contrast, guessed_outcomes, -math.inf, above_words, "that learn nothing"
            )
        if any(bare_group in contrast.groups for bare_group in bare_groups):
            continue  # the bare host is one of the two groups, so the comparison itself answers this
        for bare_group in bare_groups:
            outcomes = _outcomes(history, bare_group, used_replicates)
            never_words = f"from {bare_group}, which never grows"
            yield from _find_groups_near(
                history, contrast, outcomes, -history.design.margin, never_words, "that grow nothing"
            )


def _find_groups_near(
    history: History,
    contrast: Contrast,
    baseline: Mapping[int, float],
    least_difference: float,
    subject_words: str,
    group_words: str,
) -> Iterator[Finding]:
    """Find groups whose difference from the baseline is shown neither to exceed the margin nor to lie below
    `least_difference`.

    `baseline`: the outcome of the baseline by replicate, in percent.
    """
    margin = history.design.margin
    near_groups = dict[str, str]()
    for group in contrast.groups:
        outcomes = _outcomes(history, group, baseline)
        if not outcomes:
            continue
        difference = paired_difference(list(outcomes.values()), [baseline[replicate] for replicate in outcomes])
        low = difference.mean
        high = difference.mean
        if difference.low is not None and difference.high is not None:  # None without a t
            low = difference.low
            high = difference.high
        if low <= margin and high >= least_difference:
            near_groups[group] = f"{group} {difference.mean:+.2f} points, 95 % interval {low:+.2f} to {high:+.2f}"
    if near_groups:
        verb = "is" if len(near_groups) == 1 else "are"
        sentence = (
            f"EQUIVALENT cannot be claimed: it has not been shown that {' and '.join(near_groups)} "
            f"{verb} more than the margin of {margin:g} points {subject_words} "
            f"({'; '.join(near_groups.values())}). Two groups {group_words} would be just as close."
        )
        yield Finding("baseline", "caps equivalence", contrast.groups, sentence)


def _outcomes(history: History, group: str, replicates: Collection[int]) -> dict[int, float]:
    """Return the outcomes in percent, by replicate, for the replicates that have one."""
    outcomes = {}
    for run in history.of_group(group):
        if run.ref.replicate not in replicates:
            continue
        outcome = outcome_of(run, history.design.outcome_over)
        if outcome is not None:
            outcomes[run.ref.replicate] = outcome
    return outcomes
