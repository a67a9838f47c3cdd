"""Audit of the policy updates of each learning group. Pure.

Training pathologies are an outcome of the group's settings, so they are noted and counted. Two cases differ: an
update that does not see what the policy saw is a fault of the program, and a group that never trained has no
meaningful outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from esper_ab.analysis.conduct import learners
from esper_ab.analysis.pathologies import RATIO_MISMATCH, VALUE_COLLAPSE, count_pathologies
from esper_ab.journal.fold import History, RunHistory
from esper_ab.verdict.finding import Finding


def update_findings(history: History) -> Iterator[Finding]:
    """Yield findings per learning group; counts are over all recorded updates, including those of unfinished runs."""
    for group, runs in learners(history).items():
        trained_runs = [run for run in runs if len(run.columns) >= run.spec.episodes]
        yield from _pathologies(group, runs)
        yield from _dead_heads(group, trained_runs)


def _pathologies(group: str, runs: Sequence[RunHistory]) -> Iterator[Finding]:
    updates = [int(sum(run.columns.of("learns"))) for run in runs]
    counts = [Counter(count_pathologies(run.columns)) for run in runs]
    total = Counter[str]()
    for run_counts in counts:
        total += run_counts
    if not runs[0].spec.settings.learns:
        del total[VALUE_COLLAPSE]  # the group does not learn, so an untrained critic is expected
    for kind in sorted(total):
        affected_runs = sum(run_counts[kind] > 0 for run_counts in counts)
        place_words = f"{total[kind]} of {sum(updates)} updates, {affected_runs} of {len(runs)} runs"
        if kind == RATIO_MISMATCH:
            worst_error = max(max(run.columns.known("first_ratio_error"), default=0.0) for run in runs)
            sentence = (
                f"{group}: before the first step the probability ratio differed from 1 by up to {worst_error:.1e} "
                f"({place_words}), "
                "so the update did not reproduce the policy's probabilities."
            )
            yield Finding(kind, "blocks", (group,), sentence)
        elif all(2 * run_counts[kind] > n for run_counts, n in zip(counts, updates, strict=True)):
            sentence = (
                f"{group}: {kind} in more than half of the updates of every run ({place_words}): it did not train."
            )
            yield Finding(kind, "caps", (group,), sentence)
        else:
            yield Finding(kind, "notes", (group,), f"{group}: {kind} in {place_words}.")


def _dead_heads(group: str, runs: Sequence[RunHistory]) -> Iterator[Finding]:
    """Report heads that had no choice in any update of a whole run, although the settings allow a choice."""
    dead_counts = Counter[str]()
    for run in runs:
        dead_counts.update(_dead(run))
    if not dead_counts:
        return
    heads = ", ".join(f"{head} ({count} of {len(runs)} runs)" for head, count in sorted(dead_counts.items()))
    sentence = f"{group}: action heads that never had a choice in any update of a run: {heads}"
    first_head = runs[0].columns.heads[0]  # used in every decision
    if dead_counts[first_head] == len(runs):
        yield Finding("dead heads", "caps", (group,), f"{sentence}: it did not train.")
    else:
        yield Finding("dead heads", "notes", (group,), f"{sentence}.")


def _dead(run: RunHistory) -> list[str]:
    heads_without_choice = set()  # by the settings
    if len(run.spec.slots) == 1:
        heads_without_choice.add("slot")
    if len(run.spec.settings.growth.blueprints) == 1:
        heads_without_choice.add("blueprint")
    dead_heads = []
    for head in run.columns.heads:
        _, learnable = run.columns.head(head)
        known_shares = [share for share in learnable if share == share]  # false for NaN
        if head not in heads_without_choice and not any(known_shares):
            dead_heads.append(head)
    return dead_heads
