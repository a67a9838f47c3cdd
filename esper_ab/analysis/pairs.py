"""Journal history -> the pairs of every comparison. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import endpoint_of
from esper_ab.settings.differences import axes
from esper_ab.stats.pair import Pair
from esper_ab.verdict.question import HalfPair, Lost

Pairs = Mapping[Contrast, tuple[Pair, ...]]


def complete_replicates(history: History) -> int:
    """Count the leading replicates that are final: every run evaluated, left out or lost.

    Each is counted once: what is final stays so, and the history keeps the count for the next call.
    """
    runs, blocks = history.runs, history.blocks
    while history.complete < len(blocks) and not any(
        runs[spec.ref.name].expected for spec in blocks[history.complete].runs
    ):
        history.complete += 1
    return history.complete


def pairs_of(history: History, contrast: Contrast) -> tuple[Pair, ...]:
    """Return the pairs by replicate in which both runs have their endpoint and neither was given up."""
    declared, found = history.design.endpoint, []
    for replicate, (place_a, run_a), (place_b, run_b) in _sides(history, contrast):
        a, b = endpoint_of(run_a, declared), endpoint_of(run_b, declared)
        if a is not None and b is not None:
            found.append(Pair(replicate=replicate, a=a, b=b, position_a=place_a, position_b=place_b))
    return tuple(found)


def all_pairs(history: History) -> Pairs:
    """Return the pairs of every comparison, in the order of the design; computed once per analysis."""
    return {contrast: pairs_of(history, contrast) for contrast in history.design.comparisons}


def lost_of(history: History, contrast: Contrast) -> Lost:
    """Return the replicates without a pair because a run was given up; a run that never started is not lost."""
    declared, found = history.design.endpoint, []
    for replicate, (place_a, run_a), (place_b, run_b) in _sides(history, contrast):
        if not (run_a.lost or run_b.lost) or run_a.expected or run_b.expected or run_a.left_out or run_b.left_out:
            continue
        a, b = endpoint_of(run_a, declared), endpoint_of(run_b, declared)
        found.append(
            HalfPair(
                replicate=replicate, a=a, b=b, failed_a=run_a.failed, failed_b=run_b.failed, position_a=place_a,
                position_b=place_b,
            )
        )  # fmt: skip
    return Lost(replicates=tuple(found))


def _sides(
    history: History, contrast: Contrast
) -> Iterator[tuple[int, tuple[int, RunHistory], tuple[int, RunHistory]]]:
    """Yield per block its replicate, and of each of the two groups the position and the run."""
    for block in history.blocks:
        runs = {spec.ref.group_id: (index, history.runs[spec.ref.name]) for index, spec in enumerate(block.runs)}
        yield block.replicate, runs[contrast.a], runs[contrast.b]


def same_records(history: History, contrast: Contrast, pairs: Sequence[Pair]) -> bool:
    """Return whether pairs exist and both runs of each have equal digests throughout."""
    runs = {group: {run.ref.replicate: run for run in history.of_group(group)} for group in (contrast.a, contrast.b)}
    return bool(pairs) and all(
        _digests(runs[contrast.a][pair.replicate]) == _digests(runs[contrast.b][pair.replicate]) for pair in pairs
    )


def same_settings(history: History, contrast: Contrast) -> bool:
    """Return whether no setting differs that one of the two groups reads."""
    groups = {group.name: group for group in history.plan.experiment.groups}
    return not axes(groups[contrast.a], groups[contrast.b])


def _digests(run: RunHistory) -> tuple[str, ...]:
    evaluation = (run.evaluation.digest,) if run.evaluation else ()
    return (*run.columns.digests, *evaluation)
