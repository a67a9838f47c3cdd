"""Answers to what readers of learning curves and evaluations ask, one sentence each. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean, stdev

from esper_ab.analysis.kind import FindingsKind
from esper_ab.analysis.learning import Learning, greedy_gap
from esper_ab.analysis.own_reward import misled, own_rewards
from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome, ends_of, mean
from esper_ab.verdict.comparison import Comparison

_LEAST_RUNS = 3  # fewest runs from which a fall is reported


def remarks(
    history: History,
    outcomes: Mapping[str, RunOutcome],
    learning: Sequence[Learning],
    comparisons: Sequence[Comparison],
) -> tuple[str, ...]:
    """Return a sentence for each sign that a reward misleads, training fails or policies have not converged.

    The signs are that the own reward rises in the worse group, that a learning curve falls, that greedy and sampled
    outcomes are far apart, and that a group that does not learn is far above those that learn. A policy whose learning
    rate is 0 does not learn.
    """
    learning = [progress for progress in learning if progress.learns]
    return (
        *_misled(history, comparisons),
        *_falling(history, [progress.group for progress in learning]),
        *_greedy(history, learning),
        *_note_better_fixed_groups(history, outcomes, {progress.group for progress in learning}),
    )


def _misled(history: History, comparisons: Sequence[Comparison]) -> Iterator[str]:
    if not of_kind(history.plan.kind, FindingsKind).compares_own_rewards:
        return
    modes = {group: history.of_group(group)[0].ref.reward_mode for group in history.groups}
    for reward, better_group in misled(own_rewards(history), comparisons):
        if modes[reward.group] != modes[better_group]:
            rise_words = f"{reward.group}'s own reward rose in {reward.rose} of {reward.runs} runs"
            yield f"{rise_words}, and by the outcome it is worse than {better_group}."


def _falling(history: History, groups: Sequence[str]) -> Iterator[str]:
    design = history.design
    for group in groups:
        starts = []
        ends = []
        for run in history.of_group(group):
            if len(run.columns) < 2:
                continue
            start, end = ends_of(run.columns.of("outcome"))
            if start is not None and end is not None:
                starts.append(start)
                ends.append(end)
        changes = [(end - start) * design.outcome.sign for start, end in zip(starts, ends, strict=True)]
        if not _clearly_negative(changes):
            continue
        first_value = design.value(mean(starts) or 0.0)
        last_value = design.value(mean(ends) or 0.0)
        yield (
            f"Training did not improve the {design.outcome.label} of {group}: from {first_value} in "
            f"the first tenth of the episodes to {last_value} in the last. At this budget a comparison "
            "says little about longer training."
        )


def _clearly_negative(changes: Sequence[float]) -> bool:
    """True if the mean of enough changes is more than two standard errors below 0."""
    if len(changes) < _LEAST_RUNS:
        return False
    return fmean(changes) < -2.0 * stdev(changes) / math.sqrt(len(changes))


def _greedy(history: History, learning: Sequence[Learning]) -> Iterator[str]:
    for progress in learning:
        gap = greedy_gap(history.design, progress.sampled, progress.greedy)
        if gap:
            yield f"{progress.group}: {gap}."


def _note_better_fixed_groups(
    history: History, outcomes: Mapping[str, RunOutcome], learners: Collection[str]
) -> Iterator[str]:
    design = history.design
    trained_outcomes = {}
    fixed_outcomes = {}
    for group in history.groups:
        outcome = mean(outcomes[run.ref.name].outcome for run in history.of_group(group))
        if outcome is None:
            continue
        if group in learners:
            trained_outcomes[group] = outcome
        else:
            fixed_outcomes[group] = outcome
    if not trained_outcomes:
        return
    best_group = max(trained_outcomes, key=lambda group: design.outcome.sign * trained_outcomes[group])
    for group, outcome in fixed_outcomes.items():
        if design.outcome.sign * (outcome - trained_outcomes[best_group]) >= design.margin:
            yield (
                f"{group}, which does not learn, reaches {design.value(outcome)}; {best_group}, the best group that "
                "learns, "
                f"{design.value(trained_outcomes[best_group])}."
            )
