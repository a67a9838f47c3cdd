"""Runs in a figure: the mark of each, its tooltip, and the label of the outcome."""

from __future__ import annotations

from esper_ab.design.design import Design
from esper_ab.report.content import Content

_MOST_SINGLE = 200  # runs that a figure draws one by one: all figures together use about a kilobyte of the page per run


def token(replicate: int | None, *groups: int) -> str:
    """Return the mark of a run, of a pair of runs or, without a replicate, of a whole group; groups are indices."""
    return f"{'.'.join(map(str, groups))}-{'' if replicate is None else replicate}"


def drawn_singly(content: Content) -> frozenset[int]:
    """Return the replicates whose runs figures draw one by one: all, or only as many as a page can hold.

    These replicates are evenly spaced, so the choice depends on no outcome; they are the same in every figure.
    """
    every = sorted({block.replicate for block in content.history.blocks})
    most = max(1, _MOST_SINGLE // len(content.groups))
    return frozenset(every if len(every) <= most else (every[place * len(every) // most] for place in range(most)))


def tips(content: Content) -> dict[str, str]:
    """Return the tooltips by mark: one for every run that has an outcome, and one for every pair."""
    design = content.design
    places = {group: place for place, group in enumerate(content.groups)}
    value = design.value
    return {
        token(run.run.replicate, place): f"{group}, seed {run.run.replicate}: {value(run.outcome)}"
        for group, place in places.items()
        for run in content.of_group(group)
        if run.outcome is not None
    } | {
        token(
            pair.replicate, places[item.question.a], places[item.question.b]
        ): f"seed {pair.replicate}: {item.question.a} {value(pair.a)}, {item.question.b} {value(pair.b)}, "
        f"difference {design.difference(pair.a - pair.b)}"
        for item in content.comparisons
        for pair in item.pairs
    }


_OUTCOMES = {"evaluation": "", "last-tenth": " (last tenth of training)", "curve-mean": " (mean of training)"}


def outcome_label(design: Design, unit: str) -> str:
    """Return the axis label, with `unit`, of the design's outcome or of its difference."""
    lower = " (lower is better)" if design.outcome.sign < 0.0 else ""
    return f"{design.outcome.label}{_OUTCOMES[design.outcome_over]}{f', {unit}' if unit else ''}{lower}"
