"""Audit of the execution: time, faults, resumes and failed environments by group. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from esper_ab.analysis.audit_findings import note_on
from esper_ab.analysis.conduct import FAULTS, Conduct, conduct
from esper_ab.contracts.wording import counted, significant, times
from esper_ab.journal.fold import History
from esper_ab.verdict.finding import Finding

UNEQUAL_THROUGHPUT = 1.25  # fastest over slowest group
COLD_FIRST_EPISODE = 1.5  # first episode over the rest; above it the warm-up was incomplete


def conduct_findings(history: History) -> Iterator[Finding]:
    """Yield notes on execution, and caps for inexact resumes."""
    groups = conduct(history)
    yield from _inexact(history)
    yield from _faults(history, groups)
    for group in groups:
        if group.failed:
            failed = counted(group.failed, "environment")
            yield note_on(
                "failed environments",
                f"{group.group}: {failed} failed in training or evaluation; each keeps its outcome.",
                group.group,
            )
    yield from _throughput(groups)
    for group in groups:
        yield from _cold(group)


def _inexact(history: History) -> Iterator[Finding]:
    by_group: defaultdict[str, set[str]] = defaultdict(set)
    for name in (entry.run_name for entry in history.incidents if entry.category == "inexact_resume"):
        by_group[history.runs[name].ref.group_id if name in history.runs else ""].add(name)
    for group, names in by_group.items():
        runs = ", ".join(sorted(names - {""})) or "runs unknown"
        yield Finding(
            "inexact resume",
            "caps",
            (group,) if group else (),
            f"Repeated work did not reproduce its earlier record: {runs}.",
        )


def _faults(history: History, groups: Sequence[Conduct]) -> Iterator[Finding]:
    for group in groups:
        said = _counted_faults(group.faults)
        if group.lost:
            said.append(f"{group.lost} of {group.runs} runs lost")
        if group.cancelled:
            said.append(f"{group.cancelled} cancelled because a run of another group was lost")
        if said:
            yield note_on("faults", f"{group.group}: {', '.join(said)}.", group.group)
    outside = Counter[str](entry.category for entry in history.incidents if entry.run_name not in history.runs)
    if any(category in FAULTS for category in outside):
        yield note_on("faults", f"Outside any run: {', '.join(_counted_faults(outside))}.")
    if outside["interrupted"]:
        yield note_on("interrupted", f"The experiment was stopped by a signal {times(outside['interrupted'])}.")
    if pauses := history.pauses:
        lack = f"The disk was full {times(len(pauses))}"
        yield note_on("disk", f"{lack}, and nothing was lost: {'; '.join(pauses)}.")
    unequal = (entry.detail.rstrip(".") for entry in history.incidents if entry.category == "unequal_devices")
    yield from (note_on("hardware", f"Devices differed: {detail}.") for detail in unequal)


def _counted_faults(faults: Mapping[str, int]) -> list[str]:
    return [counted(faults[key], name) for key, name in FAULTS.items() if faults.get(key)]


def _throughput(groups: Sequence[Conduct]) -> Iterator[Finding]:
    speeds = {group.group: group.decisions_per_s for group in groups if group.decisions_per_s}
    if len(speeds) < 2 or max(speeds.values()) < UNEQUAL_THROUGHPUT * min(speeds.values()):
        return
    ratio = max(speeds.values()) / min(speeds.values())
    each = ", ".join(
        f"{group.group} {significant(speeds[group.group], 3)} ({significant(group.wall_s, 3)} s)"
        for group in groups
        if group.group in speeds
    )
    yield note_on(
        "throughput",
        f"Groups trained at different speeds; environment steps per second (wall time): {each}; fastest over slowest "
        f"{ratio:.2f}.",
    )


def _cold(group: Conduct) -> Iterator[Finding]:
    first = group.first_episode_s
    ratio = group.first_over_rest
    if first is None or ratio is None or ratio < COLD_FIRST_EPISODE or group.warm_up_s == 0.0:
        return  # not slow, or there was no warm-up that could have been too short
    if group.warm_up_s is None:
        warm = ""
    else:
        warm = f" after a warm-up of {significant(group.warm_up_s, 3)} s"
    yield note_on(
        "cold start",
        f"{group.group}: the first episode took {significant(first, 3)} s{warm}, "
        f"{ratio:.2f} times the median of the others.",
        group.group,
    )
