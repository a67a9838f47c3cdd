"""Whether the groups are clearly apart from what they would reach without learning anything. Pure.

All groups that learn nothing end alike, so a missing difference shows nothing about them. In clinical trials, the
ability to show differences is called assay sensitivity (ICH E10). So nothing is called smaller than the margin unless
both groups are shown to be farther than the margin from every known baseline: guessing a class, and groups of the
experiment that are known to learn nothing. Without any, nothing can be known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import msgspec

from esper_ab.analysis.kind import FindingsKind
from esper_ab.analysis.observe import ComparedPairs
from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import outcome_of
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS
from esper_ab.stats.paired_difference import paired_difference
from esper_ab.stats.text import signed
from esper_ab.verdict.finding import Finding

BASELINE = "baseline"  # kind of a finding
_UNEVEN = 1.05  # factor on chance: always guessing the largest class scores more, because classes differ in size
_LEAST_SHARED = 2  # seeds, for an interval

Seed = tuple[int, int]  # number of the experiment, and replicate
Outcomes = Mapping[Seed, float]  # in the unit of the outcome


@dataclass(frozen=True, kw_only=True)
class _Baseline:
    """What is reached without learning."""

    outcomes: Outcomes
    least_difference: float  # a group that is shown to lie below it is apart from the baseline
    apart_words: str  # after "more than the margin": "above guessing (10 %)"


def baseline_findings(history: History, pairs: ComparedPairs) -> Iterator[Finding]:
    """Yield at most one finding per comparison and baseline, once there are enough pairs for an equivalence."""
    outcomes = {group: _outcomes_of(0, history, group) for group in history.groups}
    for contrast, compared_pairs in pairs.items():
        seeds = {(0, pair.replicate) for pair in compared_pairs}
        yield from _findings(history, outcomes, _unlearned_groups(history), contrast, seeds)


def joined_baseline_findings(histories: Sequence[History], names: Sequence[Mapping[str, str]]) -> Iterator[Finding]:
    """Yield the findings on several experiments of one plan, over all their pairs.

    `names`: for each experiment, its own name of a group -> the name in the joint answer.
    """
    first_history = histories[0]
    outcomes: dict[str, dict[Seed, float]] = {}
    unlearned_groups: dict[str, None] = {}  # in order
    for number, (history, joint_names) in enumerate(zip(histories, names, strict=True)):
        for group in history.groups:
            outcomes.setdefault(joint_names[group], {}).update(_outcomes_of(number, history, group))
        unlearned_groups |= dict.fromkeys(joint_names[group] for group in _unlearned_groups(history))
    for contrast in first_history.design.comparisons:
        joint_contrast = msgspec.structs.replace(contrast, a=names[0][contrast.a], b=names[0][contrast.b])
        seeds = outcomes[joint_contrast.a].keys() & outcomes[joint_contrast.b].keys()
        yield from _findings(first_history, outcomes, list(unlearned_groups), joint_contrast, seeds)


def missing_baseline(history: History) -> str:
    """Return the controller whose group would show whether the others learned anything.

    "" if a baseline is known, or if there is no such controller for the task.
    """
    if history.plan.chance is not None or _unlearned_groups(history):
        return ""
    return of_kind(history.plan.kind, FindingsKind).baseline_controller


def _unlearned_groups(history: History) -> list[str]:
    """Return the groups that are known to learn nothing."""
    controller = of_kind(history.plan.kind, FindingsKind).baseline_controller
    return [group.name for group in history.plan.experiment.groups if group.settings.controller.name == controller]


def _findings(
    history: History,
    outcomes: Mapping[str, Outcomes],
    unlearned_groups: Sequence[str],
    contrast: Contrast,
    seeds: Set[Seed],
) -> Iterator[Finding]:
    """Yield the findings on a comparison over these seeds; `history` has the plan, `outcomes` are by group."""
    if len(seeds) < LEAST_EQUIVALENCE_PAIRS:
        return
    baselines = list(_guessing(history, seeds))
    if not any(group in contrast.groups for group in unlearned_groups):  # else the comparison itself answers this
        does_words = of_kind(history.plan.kind, FindingsKind).baseline_words
        baselines += [
            _Baseline(
                outcomes={seed: outcome for seed, outcome in outcomes[group].items() if seed in seeds},
                least_difference=-history.design.margin,
                apart_words=f"from {group}, which {does_words}",
            )
            for group in unlearned_groups
        ]
    for baseline in baselines:
        yield from _find_groups_near(history, outcomes, contrast, baseline)


def _guessing(history: History, seeds: Set[Seed]) -> Iterator[_Baseline]:
    """Yield the baseline of guessing a class, if there are classes."""
    chance = history.plan.chance
    if chance is not None:
        yield _Baseline(
            outcomes=dict.fromkeys(seeds, chance * _UNEVEN),
            least_difference=-math.inf,
            apart_words=f"above guessing ({history.outcome.value(f'{chance:.3g}')})",
        )


def _find_groups_near(
    history: History, outcomes: Mapping[str, Outcomes], contrast: Contrast, baseline: _Baseline
) -> Iterator[Finding]:
    """Find groups whose difference from a baseline is shown neither to exceed the margin nor to lie below its
    `least_difference`.
    """
    design = history.design
    near_groups = dict[str, str]()
    for group in contrast.groups:
        shared_seeds = [seed for seed in outcomes[group] if seed in baseline.outcomes]
        if len(shared_seeds) < _LEAST_SHARED:
            near_groups[group] = f"{group} shares too few seeds with it"
            continue
        difference = paired_difference(
            [outcomes[group][seed] for seed in shared_seeds], [baseline.outcomes[seed] for seed in shared_seeds]
        )
        low = difference.mean
        high = difference.mean
        if difference.low is not None and difference.high is not None:  # None if nothing varies
            low = difference.low
            high = difference.high
        if low <= design.margin and high >= baseline.least_difference:
            near_groups[group] = (
                f"{group} {design.difference(difference.mean)}, "
                f"95 % interval {signed(low, design.digits)} to {signed(high, design.digits)}"
            )
    if near_groups:
        verb = "is" if len(near_groups) == 1 else "are"
        claim = "EQUIVALENT" if design.non_inferiority is None else "NOT WORSE"
        sentence = (
            f"{claim} cannot be claimed: it has not been shown that {' and '.join(near_groups)} "
            f"{verb} more than the margin of {design.margin_words} {baseline.apart_words} "
            f"({'; '.join(near_groups.values())}). Two groups that learn nothing would be just as close."
        )
        yield Finding(BASELINE, "caps equivalence", contrast.groups, sentence)


def _outcomes_of(number: int, history: History, group: str) -> dict[Seed, float]:
    """Return the outcomes of a group in the experiment with this number, where there are any."""
    outcomes = {}
    for run in history.of_group(group):
        outcome = outcome_of(run, history.design.outcome_over)
        if outcome is not None:
            outcomes[number, run.ref.replicate] = outcome
    return outcomes
