"""Answers to what readers of learning curves and evaluations ask, one sentence each. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev

from esper_ab.analysis.learning import Learning, greedy_gap
from esper_ab.analysis.own_reward import misled, own_rewards
from esper_ab.contracts.kinds_of_task import GYMNASIUM
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
    learning = [one for one in learning if one.learns]
    return (
        *_misled(history, comparisons),
        *_falling(history, learning),
        *_greedy(history, learning),
        *_fixed_above(history, outcomes, learning),
    )


def _misled(history: History, comparisons: Sequence[Comparison]) -> Iterator[str]:
    modes = {group: history.of_group(group)[0].ref.reward_mode for group in history.groups}
    for one, better in misled(own_rewards(history), comparisons) if history.plan.kind == GYMNASIUM else ():
        if modes[one.group] != modes[better]:
            rose = f"{one.group}'s own reward rose in {one.rose} of {one.runs} runs"
            yield f"{rose}, and by the outcome it is worse than {better}."


def _falling(history: History, learning: Sequence[Learning]) -> Iterator[str]:
    design = history.design
    for one in learning:
        curves = (run.columns.of("outcome") for run in history.of_group(one.group) if len(run.columns) > 1)
        ends = [(first, last) for first, last in map(ends_of, curves) if first is not None and last is not None]
        changes = [(last - first) * design.outcome.sign for first, last in ends]
        if len(changes) < _LEAST_RUNS or fmean(changes) >= -2.0 * stdev(changes) / math.sqrt(len(changes)):
            continue  # too few runs, or their mean change is not more than two standard errors below 0
        first, last = (mean(values) for values in zip(*ends, strict=True))
        yield (
            f"Training did not improve the {design.outcome.label} of {one.group}: from {design.value(first or 0.0)} in "
            f"the first tenth of the episodes to {design.value(last or 0.0)} in the last. At this budget a comparison "
            "says little about longer training."
        )


def _greedy(history: History, learning: Sequence[Learning]) -> Iterator[str]:
    for one in learning:
        if gap := greedy_gap(history.design, one.sampled, one.greedy):
            yield f"{one.group}: {gap}."


def _fixed_above(history: History, outcomes: Mapping[str, RunOutcome], learning: Sequence[Learning]) -> Iterator[str]:
    design = history.design
    learners = {one.group for one in learning}
    means = {
        group: found
        for group in history.groups
        if (found := mean(outcomes[run.ref.name].outcome for run in history.of_group(group))) is not None
    }
    trained = {group: value for group, value in means.items() if group in learners}
    if not trained:
        return
    best = max(trained, key=lambda group: design.outcome.sign * trained[group])
    for group, value in means.items():
        if group not in learners and design.outcome.sign * (value - trained[best]) >= design.margin:
            yield (
                f"{group}, which does not learn, reaches {design.value(value)}; {best}, the best group that learns, "
                f"{design.value(trained[best])}."
            )
