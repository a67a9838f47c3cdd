"""Audit of the execution: time, faults, resumes and failed environments by group. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from esper_ab.analysis.conduct import FAULTS, Conduct, conduct
from esper_ab.journal.fold import History
from esper_ab.stats.text import counted, significant
from esper_ab.verdict.finding import Finding

UNEQUAL_THROUGHPUT = 1.25  # fastest over slowest group
COLD_FIRST_EPISODE = 1.5  # first episode over the rest; above it the warm-up was incomplete


def findings(history: History) -> Iterator[Finding]:
    """Yield notes on execution, and caps for inexact resumes."""
    groups = conduct(history)
    yield from _inexact(history)
    yield from _faults(history, groups)
    for group in groups:
        if group.failed:
            failed = counted(group.failed, "environment")
            sentence = f"{group.group}: {failed} failed in training or evaluation; each keeps its outcome."
            yield _note("failed environments", sentence, group.group)
    yield from _throughput(groups)
    for group in groups:
        yield from _cold(group)


def _inexact(history: History) -> Iterator[Finding]:
    by_group: dict[str, set[str]] = {}
    for entry in history.incidents:
        if entry.category == "inexact_resume":
            group = history.runs[entry.run_name].ref.group_id if entry.run_name in history.runs else ""
            by_group.setdefault(group, set()).add(entry.run_name)
    for group, names in by_group.items():
        runs = ", ".join(sorted(names - {""})) or "runs unknown"
        sentence = f"Work that was done again did not give the same record as before: {runs}."
        yield Finding("inexact resume", "caps", (group,) if group else (), sentence)


def _faults(history: History, groups: Sequence[Conduct]) -> Iterator[Finding]:
    for group in groups:
        said = _counted(group.faults)
        if group.lost:
            said.append(f"{group.lost} of {group.runs} runs lost")
        if group.cancelled:
            said.append(f"{group.cancelled} cancelled with another group's lost run")
        if said:
            yield _note("faults", f"{group.group}: {', '.join(said)}.", group.group)
    outside = Counter[str](entry.category for entry in history.incidents if entry.run_name not in history.runs)
    if any(category in FAULTS for category in outside):
        yield _note("faults", f"Outside of any run: {', '.join(_counted(outside))}.")
    if outside["interrupted"]:
        times = "once" if outside["interrupted"] == 1 else f"{outside['interrupted']} times"
        yield _note("interrupted", f"The experiment was stopped by a signal {times}.")
    if pauses := history.pauses:
        times = "once" if len(pauses) == 1 else f"{len(pauses)} times"
        yield _note("disk", f"There was no room on the disk {times}, and nothing was lost: {'; '.join(pauses)}.")
    for entry in history.incidents:
        if entry.category == "unequal_devices":
            yield _note("hardware", f"Devices were not equal: {entry.detail.rstrip('.')}.")


def _counted(faults: Mapping[str, int]) -> list[str]:
    return [f"{faults[key]} {names[faults[key] > 1]}" for key, names in FAULTS.items() if faults.get(key)]


def _throughput(groups: Sequence[Conduct]) -> Iterator[Finding]:
    speeds = {group.group: group.decisions_per_s for group in groups if group.decisions_per_s}
    if len(speeds) < 2 or max(speeds.values()) < UNEQUAL_THROUGHPUT * min(speeds.values()):
        return
    ratio = max(speeds.values()) / min(speeds.values())
    each = ", ".join(
        f"{group.group} {significant(speeds[group.group], 3)} ({significant(group.wall_s, 3)} s)"
        for group in groups if group.group in speeds
    )
    sentence = (
        f"Groups did not train equally fast, environment steps per second (wall time): {each}; fastest over slowest "
        f"{ratio:.2f}."
    )
    yield _note("throughput", sentence)


def _cold(group: Conduct) -> Iterator[Finding]:
    first, times = group.first_episode_s, group.first_over_rest
    if first is None or times is None or times < COLD_FIRST_EPISODE or group.warm_up_s == 0.0:
        return  # or it has no warm-up that could have been too short
    warm = "" if group.warm_up_s is None else f" after a warm-up of {significant(group.warm_up_s, 3)} s"
    sentence = (
        f"{group.group}: the first episode took {significant(first, 3)} s{warm}, "
        f"{times:.2f} times the median of the others."
    )
    yield _note("cold start", sentence, group.group)


def _note(kind: str, sentence: str, *groups: str) -> Finding:
    return Finding(kind, "notes", groups, sentence)
