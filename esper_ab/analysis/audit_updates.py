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
        trained = [run for run in runs if len(run.columns) >= run.spec.episodes]
        yield from _pathologies(group, runs)
        yield from _dead_heads(group, trained)


def _pathologies(group: str, runs: Sequence[RunHistory]) -> Iterator[Finding]:
    updates = [int(sum(run.columns.of("learns"))) for run in runs]
    counts = [Counter(count_pathologies(run.columns)) for run in runs]
    total = Counter[str]()
    for of_run in counts:
        total += of_run
    if not runs[0].spec.settings.learns:
        del total[VALUE_COLLAPSE]  # the group does not learn, so an untrained critic is expected
    for kind in sorted(total):
        affected = sum(of_run[kind] > 0 for of_run in counts)
        where = f"{total[kind]} of {sum(updates)} updates, {affected} of {len(runs)} runs"
        if kind == RATIO_MISMATCH:
            worst = max(max(run.columns.known("first_ratio_error"), default=0.0) for run in runs)
            sentence = (
                f"{group}: before the first step the probability ratio differed from 1 by up to {worst:.1e} ({where}), "
                "so the update did not reproduce the policy's probabilities."
            )
            yield Finding(kind, "blocks", (group,), sentence)
        elif all(2 * of_run[kind] > n for of_run, n in zip(counts, updates, strict=True)):
            sentence = f"{group}: {kind} in more than half of the updates of every run ({where}): it did not train."
            yield Finding(kind, "caps", (group,), sentence)
        else:
            yield Finding(kind, "notes", (group,), f"{group}: {kind} in {where}.")


def _dead_heads(group: str, runs: Sequence[RunHistory]) -> Iterator[Finding]:
    """Report heads that had no choice in any update of a whole run, although the settings allow a choice."""
    dead = Counter[str]()
    for run in runs:
        dead.update(_dead(run))
    if not dead:
        return
    heads = ", ".join(f"{head} ({count} of {len(runs)} runs)" for head, count in sorted(dead.items()))
    sentence = f"{group}: action heads that never had a choice in any update of a run: {heads}"
    first = runs[0].columns.heads[0]  # used in every decision
    if dead[first] == len(runs):
        yield Finding("dead heads", "caps", (group,), f"{sentence}: it did not train.")
    else:
        yield Finding("dead heads", "notes", (group,), f"{sentence}.")


def _dead(run: RunHistory) -> list[str]:
    without_choice = set()  # by the settings
    if len(run.spec.slots) == 1:
        without_choice.add("slot")
    if len(run.spec.settings.growth.blueprints) == 1:
        without_choice.add("blueprint")
    dead = []
    for head in run.columns.heads:
        _, learnable = run.columns.head(head)
        known = [share for share in learnable if share == share]  # false for NaN
        if head not in without_choice and not any(known):
            dead.append(head)
    return dead
