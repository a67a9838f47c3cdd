"""Did the policies of a group learn as PPO is meant to? Pure.

What goes wrong in training is an outcome of the group's settings, so it is noted and counted. Two things are not: an
update that does not see what the policy saw is a fault of the program, and a group that never trained tells nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from esper_ab.analysis.pathologies import RATIO_MISMATCH, pathologies
from esper_ab.contracts.records import PPOUpdate
from esper_ab.journal.fold import History, RunHistory
from esper_ab.stats.audit_result import Finding

_OP = "op"  # the head that says what to do: used in every decision


def findings(history: History) -> Iterator[Finding]:
    """Per group that learns; counts over all recorded updates, also of runs that are not finished."""
    for group in history.groups:
        runs = [run for run in history.of_group(group) if any(record.ppo for record in run.curve())]
        if runs:
            yield from _pathologies(group, runs)
            yield from _dead_heads(group, [run for run in runs if len(run.episodes) >= run.spec.episodes])


def _pathologies(group: str, runs: Sequence[RunHistory]) -> Iterator[Finding]:
    updates = [sum(record.ppo is not None for record in run.curve()) for run in runs]
    counts = [Counter(kind for record in run.curve() for kind in pathologies(record)) for run in runs]
    total: Counter[str] = sum(counts, Counter())
    for kind in sorted(total):
        affected = sum(count[kind] > 0 for count in counts)
        where = f"{total[kind]} of {sum(updates)} updates, {affected} of {len(runs)} runs"
        if kind == RATIO_MISMATCH:
            worst = max(update.first_ratio_error or 0.0 for run in runs for update in _updates(run))
            sentence = (
                f"{group}: before the first step the probability ratio was off 1 by up to {worst:.1e} ({where}), so "
                "the update did not see what the policy saw."
            )
            yield Finding(kind=kind, weight="blocks", groups=(group,), sentence=sentence)
        elif all(2 * count[kind] > n for count, n in zip(counts, updates, strict=True)):
            sentence = f"{group}: {kind} in more than half of the updates of every run ({where}): it did not train."
            yield Finding(kind=kind, weight="caps", groups=(group,), sentence=sentence)
        else:
            yield Finding(kind=kind, weight="notes", groups=(group,), sentence=f"{group}: {kind} in {where}.")


def _dead_heads(group: str, runs: Sequence[RunHistory]) -> Iterator[Finding]:
    """Heads without a choice in every update of a whole run, though the settings leave them one."""
    dead = Counter(head for run in runs for head in _dead(run))
    if not dead:
        return
    heads = ", ".join(f"{head} ({count} of {len(runs)} runs)" for head, count in sorted(dead.items()))
    caps = dead[_OP] == len(runs)
    end = ": it did not train" if caps else ""
    sentence = f"{group}: action heads that never had a choice in any update of a run: {heads}{end}."
    yield Finding(kind="dead heads", weight="caps" if caps else "notes", groups=(group,), sentence=sentence)


def _dead(run: RunHistory) -> list[str]:
    used = [update.heads for update in _updates(run) if update.heads]
    single = {"slot": len(run.spec.slots) == 1, "blueprint": len(run.spec.settings.growth.blueprints) == 1}
    return [
        head
        for head in (used[0] if used else ())
        if not single.get(head) and all(heads[head].learnable == 0.0 for heads in used)
    ]


def _updates(run: RunHistory) -> list[PPOUpdate]:
    return [record.ppo for record in run.curve() if record.ppo is not None]
