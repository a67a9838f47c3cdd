"""Whether the mean over the last third of training should be the outcome: where curves are flat there, if it saves
seeds.

The rule is measured on real runs in docs/evidence/statistics-on-training.md (`scripts/resample_windows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from esper_ab.contracts.outcome_window import OutcomeOver
from esper_ab.contracts.wording import significant
from esper_ab.design.design import Design
from esper_ab.design.endings_text import Cost
from esper_ab.design.outcome_windows import WindowNeeds
from esper_ab.design.pairs_needed import MOST_NAMED, fewest_pairs
from esper_ab.design.power import sd_of_differences
from esper_ab.stats.curve_change import LEVEL, CurveChange
from esper_ab.stats.text import percent, with_unit

WINDOW: OutcomeOver = "last-third"
FLAT = 0.5  # margins; a line that changes by so much puts the mean over it a quarter of a margin off its end
WORTHWHILE = 2.0 / 3.0  # of the seeds; what saves less is not worth another question

Finding = Literal["recommended", "changing", "unknown", "costly"]


class GroupChange(msgspec.Struct, frozen=True, kw_only=True):
    """How much the curves of one group change over the last third of training."""

    group: str
    change: CurveChange


class WindowAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the last third of training as outcome.

    `changing`: the curves of a group change over it. `unknown`: its interval is too wide to call them flat. `costly`:
    curves are flat, but it saves too few seeds.
    """

    finding: Finding
    steepest: GroupChange  # of the groups that decide the finding, the one whose interval reaches furthest from 0
    seeds: int | None  # for 80 % power at the margin with the last third; None: more than 10,000
    seeds_evaluation: int | None


def is_flat(change: CurveChange, margin: float) -> bool:
    """Whether two one-sided tests show that curves change by less than FLAT margins in either direction."""
    return -FLAT * margin < change.low and change.high < FLAT * margin


def changes(change: CurveChange, margin: float) -> bool:
    """Whether curves are shown to change in one direction, by no less than the size that counts as flat on average."""
    return (change.low > 0.0 or change.high < 0.0) and abs(change.mean) >= FLAT * margin


def window_advice(
    group_changes: Sequence[GroupChange], margin: float, seeds: int | None, seeds_evaluation: int | None
) -> WindowAdvice | None:
    """Apply the rule to the curves of all groups that are known; None if there are none."""
    if not group_changes:
        return None
    changing = [group for group in group_changes if changes(group.change, margin)]
    steepest = max(changing or group_changes, key=_reach)
    finding: Finding = "recommended"
    if changing:
        finding = "changing"
    elif not all(is_flat(group.change, margin) for group in group_changes):
        finding = "unknown"
    elif seeds is None or (seeds_evaluation is not None and seeds > WORTHWHILE * seeds_evaluation):
        finding = "costly"
    return WindowAdvice(finding=finding, steepest=steepest, seeds=seeds, seeds_evaluation=seeds_evaluation)


def _reach(group: GroupChange) -> float:
    return max(abs(group.change.low), abs(group.change.high))


def advice_of(needs: Sequence[WindowNeeds], group_changes: Sequence[GroupChange], margin: float) -> WindowAdvice | None:
    """Apply the rule to the seeds that the windows need by the first table; None unless both outcomes have a spread."""
    seeds = {window.outcome_over: window.seeds[0] for window in needs}
    if WINDOW not in seeds or "evaluation" not in seeds:
        return None
    return window_advice(group_changes, margin, seeds[WINDOW], seeds["evaluation"])


def advice_of_plan(
    design: Design, group_changes: Sequence[GroupChange], run_sd: float, run_sd_evaluation: float
) -> WindowAdvice | None:
    """Apply the rule to a plan that compares evaluations, for uncorrelated pairs of runs with these SDs.

    `run_sd` is that of the last third. Return None if one of them is 0, or the plan compares nothing.
    """
    if not (design.comparisons and run_sd > 0.0 and run_sd_evaluation > 0.0):
        return None
    columns = design.positions if design.adjusted else 1
    alpha = design.alpha / len(design.comparisons)
    if design.non_inferiority is not None:  # a one-sided claim
        alpha = 2.0 * alpha
    needs = []
    for sd in (run_sd, run_sd_evaluation):
        fewest = fewest_pairs(sd_of_differences(sd, 0.0), design.margin, alpha, columns)
        needs.append(fewest if fewest <= MOST_NAMED else None)
    return window_advice(group_changes, design.margin, *needs)


def advice_sentence(advice: WindowAdvice, margin: float, unit: str, cost: Cost | None = None) -> str:
    """Say what the last third of training would save, or why it is not recommended.

    `cost`: how long a number of seeds takes, in words.
    """
    steepest = advice.steepest
    interval = (
        f"{_signed(steepest.change.mean)}, {percent(LEVEL)} interval {_signed(steepest.change.low)} to "
        f"{_signed(steepest.change.high)}"
    )
    if advice.finding == "changing":
        return (
            f"Not recommended: --outcome-over {WINDOW}, because the curves of {steepest.group} still change "
            f"({interval}): a mean over the last third of training estimates another difference."
        )
    if advice.finding == "unknown":
        limit = with_unit(significant(FLAT * margin), unit)
        return (
            f"Not recommended: --outcome-over {WINDOW}, because the curves of {steepest.group} may still change by "
            f"{limit} or more, which is half the margin ({interval})."
        )
    seeds = _seeds_in_words(advice.seeds, cost)
    seeds_evaluation = _seeds_in_words(advice.seeds_evaluation, cost)
    if advice.finding == "costly":
        return (
            f"Not recommended: --outcome-over {WINDOW}. Curves are flat over the last third of training, but it needs "
            f"{seeds}, and the evaluation {seeds_evaluation}."
        )
    return (
        f"Recommended: --outcome-over {WINDOW}, which needs {seeds} for the margin instead of "
        f"{seeds_evaluation}. Curves are flat there ({steepest.group}: {interval}); it estimates the last third of "
        "training."
    )


def _seeds_in_words(seeds: int | None, cost: Cost | None) -> str:
    if seeds is None:
        return f"more than {MOST_NAMED:,} seeds"
    if cost is None:
        return f"{seeds} seeds"
    return f"{seeds} seeds ({cost(seeds)})"


def _signed(value: float) -> str:
    """Write a change with its sign and about two digits."""
    sign = "-" if value < 0.0 else "+"
    return f"{sign}{significant(abs(value))}"
