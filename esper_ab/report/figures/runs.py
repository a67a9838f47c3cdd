"""Runs in a figure: the mark of each, its tooltip, and the label of the outcome."""

from __future__ import annotations

from esper_ab.design.design import Design
from esper_ab.report.content import Content

_MOST_SINGLE = 200  # runs that a figure draws one by one: all figures together use about a kilobyte of the page per run


def token(replicate: int | None, *groups: int) -> str:
    """Return the mark of a run, of a pair of runs or, without a replicate, of a whole group; groups are indices."""
    group_numbers = ".".join(map(str, groups))
    if replicate is None:
        return f"{group_numbers}-"
    return f"{group_numbers}-{replicate}"


def drawn_singly(content: Content) -> frozenset[int]:
    """Return the replicates whose runs figures draw one by one: all, or only as many as a page can hold.

    These replicates are evenly spaced, so the choice depends on no outcome; they are the same in every figure.
    """
    replicates = sorted({block.replicate for block in content.history.blocks})
    limit = max(1, _MOST_SINGLE // len(content.groups))
    if len(replicates) <= limit:
        return frozenset(replicates)
    return frozenset(replicates[place * len(replicates) // limit] for place in range(limit))


def not_drawn(content: Content) -> str:
    """Return a caption's sentence on the runs that are not drawn one by one; "" if all are."""
    total = len({block.replicate for block in content.history.blocks})
    drawn_count = len(drawn_singly(content))
    if drawn_count == total:
        return ""
    return f" Drawn one by one: {drawn_count} of {total} seeds, evenly spaced. Everything else includes every run."


def tips(content: Content) -> dict[str, str]:
    """Return the tooltips by mark: one for every run that has an outcome, and one for every pair."""
    value = content.design.value
    tooltips = {}
    for index, group in enumerate(content.groups):
        for run in content.of_group(group):
            if run.outcome is not None:
                replicate = run.run.replicate
                tooltips[token(replicate, index)] = f"{group}, seed {replicate}: {value(run.outcome)}"
    for item in content.comparisons:
        a = item.question.a
        b = item.question.b
        index_a = content.groups.index(a)
        index_b = content.groups.index(b)
        for pair in item.pairs:
            difference = content.design.difference(pair.a - pair.b)
            words = f"seed {pair.replicate}: {a} {value(pair.a)}, {b} {value(pair.b)}, difference {difference}"
            tooltips[token(pair.replicate, index_a, index_b)] = words
    return tooltips


_OUTCOMES = {
    "evaluation": "",
    "last-tenth": " (last tenth of training)",
    "last-third": " (last third of training)",
    "curve-mean": " (mean of training)",
}


def outcome_label(design: Design, unit: str) -> str:
    """Return the axis label, with `unit`, of the design's outcome or of its difference."""
    label = design.outcome.label + _OUTCOMES[design.outcome_over]
    if unit:
        label += f", {unit}"
    if design.outcome.sign < 0.0:
        label += " (lower is better)"
    return label
