"""What a reader of learning curves and evaluations would ask about, answered in a sentence each. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from esper_ab.analysis.learning import Learning, greedy_gap
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import RunOutcome, ends_of, mean

_LEAST_RUNS = 3  # to speak of a fall


def remarks(history: History, outcomes: Mapping[str, RunOutcome], learning: Sequence[Learning]) -> tuple[str, ...]:
    """Return a sentence for each of: curves that fall, greedy far from sampled, a fixed group far above learners.

    A policy whose learning rate is 0 is as fixed as a controller.
    """
    learning = [one for one in learning if one.learns]
    return (*_falling(history, learning), *_greedy(history, learning), *_fixed_above(history, outcomes, learning))


def _falling(history: History, learning: Sequence[Learning]) -> Iterator[str]:
    design = history.design
    for one in learning:
        ends = [found for run in history.of_group(one.group) if (found := _ends(run)) is not None]
        changes = [(last - first) * design.outcome.sign for first, last in ends]
        if len(changes) < _LEAST_RUNS or not _surely_below_zero(changes):
            continue
        first, last = (mean(values) for values in zip(*ends, strict=True))
        yield (
            f"Training did not improve the {design.outcome.label} of {one.group}: from {design.value(first or 0.0)} in "
            f"the first tenth of the episodes to {design.value(last or 0.0)} in the last. A comparison at this budget "
            "says little about what the groups would learn in a longer one."
        )


def _ends(run: RunHistory) -> tuple[float, float] | None:
    """Return the mean outcome of the first and of the last tenth of a run's episodes; None below two episodes."""
    curve = run.columns.of("outcome")
    first, last = ends_of(curve)
    return None if len(curve) < 2 or first is None or last is None else (first, last)


def _surely_below_zero(changes: Sequence[float]) -> bool:
    """Whether the mean lies more than two of its standard errors below 0."""
    middle = math.fsum(changes) / len(changes)
    variance = math.fsum((change - middle) ** 2 for change in changes) / (len(changes) - 1)
    return middle < -2.0 * math.sqrt(variance / len(changes))


def _greedy(history: History, learning: Sequence[Learning]) -> Iterator[str]:
    for one in learning:
        if gap := greedy_gap(history.design, one.sampled, one.greedy):
            yield f"Of {one.group}: {gap}."


def _fixed_above(
    history: History, outcomes: Mapping[str, RunOutcome], learning: Sequence[Learning]
) -> Iterator[str]:
    design, learners = history.design, {one.group for one in learning}
    means = {
        group: found for group in history.groups
        if (found := mean(outcomes[run.ref.name].outcome for run in history.of_group(group))) is not None
    }  # fmt: skip
    trained = {group: value for group, value in means.items() if group in learners}
    if not trained:
        return
    best = max(trained, key=lambda group: design.outcome.sign * trained[group])
    for group, value in means.items():
        if group not in learners and design.outcome.sign * (value - trained[best]) >= design.margin:
            yield (
                f"{group}, which does not learn, comes to {design.value(value)}, the best group that learns, {best}, "
                f"to {design.value(trained[best])}: the margin or more apart."
            )
