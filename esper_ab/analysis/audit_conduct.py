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
    for group in groups:
        yield from _faults_of(group)
    yield from _other_incidents(history)
    for group in groups:
        if group.failed:
            failed_words = counted(group.failed, "environment")
            sentence = f"{group.group}: {failed_words} failed in training or evaluation; each keeps its outcome."
            yield note_on("failed environments", sentence, group.group)
    yield from _throughput(groups)
    for group in groups:
        yield from _cold(group)


def _inexact(history: History) -> Iterator[Finding]:
    by_group: defaultdict[str, set[str]] = defaultdict(set)
    for entry in history.incidents:
        if entry.category != "inexact_resume":
            continue
        if entry.run_name in history.runs:
            by_group[history.runs[entry.run_name].ref.group_id].add(entry.run_name)
        else:
            by_group[""].add(entry.run_name)
    for group, names in by_group.items():
        runs = ", ".join(sorted(names - {""})) or "runs unknown"
        sentence = f"Repeated work did not reproduce its earlier record: {runs}."
        groups = (group,) if group else ()
        yield Finding("inexact resume", "caps", groups, sentence)


def _faults_of(group: Conduct) -> Iterator[Finding]:
    faults = _counted_faults(group.faults)
    if group.lost:
        faults.append(f"{group.lost} of {group.runs} runs lost")
    if group.cancelled:
        faults.append(f"{group.cancelled} cancelled because a run of another group was lost")
    if faults:
        yield note_on("faults", f"{group.group}: {', '.join(faults)}.", group.group)


def _other_incidents(history: History) -> Iterator[Finding]:
    """Report incidents that belong to no run, full disks and unequal devices."""
    counts_outside = Counter[str](entry.category for entry in history.incidents if entry.run_name not in history.runs)
    faults = _counted_faults(counts_outside)
    if faults:
        yield note_on("faults", f"Outside any run: {', '.join(faults)}.")
    if counts_outside["interrupted"]:
        yield note_on("interrupted", f"The experiment was stopped by a signal {times(counts_outside['interrupted'])}.")
    pauses = history.pauses
    if pauses:
        sentence = f"The disk was full {times(len(pauses))}, and nothing was lost: {'; '.join(pauses)}."
        yield note_on("disk", sentence)
    for entry in history.incidents:
        if entry.category == "unequal_devices":
            yield note_on("hardware", f"Devices differed: {entry.detail.rstrip('.')}.")


def _counted_faults(faults: Mapping[str, int]) -> list[str]:
    return [counted(faults[key], name) for key, name in FAULTS.items() if faults.get(key)]


def _throughput(groups: Sequence[Conduct]) -> Iterator[Finding]:
    speeds = []
    group_words = []
    for group in groups:
        speed = group.decisions_per_s
        if speed:
            speeds.append(speed)
            group_words.append(f"{group.group} {significant(speed, 3)} ({significant(group.wall_s, 3)} s)")
    if len(speeds) < 2 or max(speeds) < UNEQUAL_THROUGHPUT * min(speeds):
        return
    ratio = max(speeds) / min(speeds)
    sentence = (
        f"Groups trained at different speeds; environment steps per second (wall time): {', '.join(group_words)}; "
        "fastest "
        f"over slowest {ratio:.2f}."
    )
    yield note_on("throughput", sentence)


def _cold(group: Conduct) -> Iterator[Finding]:
    first_s = group.first_episode_s
    ratio = group.first_over_rest
    if first_s is None or ratio is None or ratio < COLD_FIRST_EPISODE:
        return
    if group.warm_up_s == 0.0:
        return  # there was no warm-up that could have been too short
    warm_up_words = ""
    if group.warm_up_s is not None:
        warm_up_words = f" after a warm-up of {significant(group.warm_up_s, 3)} s"
    sentence = (
        f"{group.group}: the first episode took {significant(first_s, 3)} s{warm_up_words}, "
        f"{ratio:.2f} times the median of the others."
    )
    yield note_on("cold start", sentence, group.group)
