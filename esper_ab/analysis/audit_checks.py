"""Checks of the audit on each group: its setup, the conduct of its runs, and its policy updates. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from esper_ab.analysis.conduct import FAULTS, Conduct, conduct, learners
from esper_ab.analysis.pathologies import RATIO_MISMATCH, VALUE_COLLAPSE, count_pathologies
from esper_ab.analysis.trained_by import CodeState, code_states, recorded_by, sittings_at_work, telling
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.wording import counted, significant, times
from esper_ab.journal.fold import History, RunHistory
from esper_ab.verdict.vocabulary import Finding, Weight

# --- audit setup -----------------------------------------------------------------------------------------------------
# Audit of the conditions: same code and same orders for all runs. Pure.


# Fields of RunSpec that must be equal for all runs.
_COMMON = (
    "experiment_digest", "rng_seed", "task", "outcome", "repeats", "data_dir", "slots", "n_envs", "episodes", "steps",
    "eval_episodes", "arithmetic",
)  # fmt: skip


def setup_findings(history: History) -> Iterator[Finding]:
    """Check code, versions and machine, which may differ between the sittings of a continued experiment.

    A sitting that recorded no result is ignored.
    """
    sittings = sittings_at_work(history)
    yield from _code(code_states(history), [sitting.code for sitting in sittings])
    yield from _unlike(
        "versions", "blocks", "The runs used different versions", [sitting.versions for sitting in sittings]
    )
    yield from _torch(history)
    yield from _orders([run.spec for run in history.runs.values()], history.plan.digest)
    continued = "The experiment was continued on another machine"
    yield from _unlike("machine", "notes", continued, [sitting.machine for sitting in sittings])
    if history.plan.carries:
        yield _note(
            "environments",
            "The environments carry state from one reset to the next: in the preflight the same seed and actions gave "
            "different results after an episode than in new environments. An evaluation starts in new environments, "
            "without that state, and so does a run that is resumed after a death; its results then differ.",
        )
    elif any(not run.spec.repeats for run in history.runs.values()):
        yield _note(
            "environments",
            "The environments are not repeatable: in the preflight the same seed and actions gave different results. "
            "So pairs share seeds but not events, equal settings do not give equal records, and a run that is resumed "
            "after a death gives other results than an undisturbed one.",
        )
    if history.plan.experiment.unpaired:
        yield _note(
            "unpaired", "The groups of a seed share no randomness (unpaired), so differences vary more than necessary."
        )


def _code(states: Sequence[CodeState], found: Sequence[Mapping[str, str]]) -> Iterator[Finding]:
    if len(states) > 1:
        key = telling([state.code for state in states])
        each = [f"{key} {state.code.get(key, '')[:16] or 'unknown'} in {_counted(state.runs)}" for state in states]
        yield Finding("code", "blocks", (), f"The runs used {len(states)} states of the code: {'; '.join(each)}.")
    dirty = sum(code.get("dirty") == "yes" for code in found)
    if dirty:
        where = "" if len(found) == 1 else f" in {dirty} of {len(found)} sittings"
        yield _note("dirty checkout", f"The checkout had uncommitted changes{where}.")


def _counted(runs: Sequence[str]) -> str:
    """Return "shaped/4", or "10 runs, shaped/0 first"."""
    return runs[0] if len(runs) == 1 else f"{len(runs)} runs, {runs[0]} first"


def _unlike(kind: str, weight: Weight, words: str, found: Sequence[Mapping[str, str]]) -> Iterator[Finding]:
    """Report the keys that have several values, or are missing somewhere."""
    keys = sorted({key for mapping in found for key in mapping})
    values = {key: list(dict.fromkeys(mapping.get(key, "none") for mapping in found)) for key in keys}
    if said := [f"{key} {', '.join(several)}" for key, several in values.items() if len(several) > 1]:
        yield Finding(kind, weight, (), f"{words}: {'; '.join(said)}.")


def _torch(history: History) -> Iterator[Finding]:
    lanes: defaultdict[str, set[str]] = defaultdict(set)
    for worker in (taken.worker for run in history.runs.values() for taken in recorded_by(run)):
        if worker is not None:
            lanes[worker.torch_version].add(worker.device)
    if len(lanes) > 1:
        each = [f"{version or 'none'} on {', '.join(sorted(names))}" for version, names in sorted(lanes.items())]
        yield Finding("torch", "blocks", (), f"Workers used different versions of torch: {'; '.join(each)}.")


def _orders(specs: Sequence[RunSpec], digest: str) -> Iterator[Finding]:
    differing = [key for key in _COMMON if len({repr(getattr(spec, key)) for spec in specs}) > 1]
    foreign = [spec.ref.name for spec in specs if spec.experiment_digest != digest]
    if differing:
        yield Finding("orders", "blocks", (), f"Runs had different values of common settings: {', '.join(differing)}.")
    elif foreign:
        yield Finding("orders", "blocks", (), f"{len(foreign)} runs do not come from this plan, {foreign[0]} first.")


# --- audit conduct ---------------------------------------------------------------------------------------------------
# Audit of the execution: time, faults, resumes and failed environments by group. Pure.


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
            yield _note(
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
            "inexact resume", "caps", (group,) if group else (),
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
            yield _note("faults", f"{group.group}: {', '.join(said)}.", group.group)
    outside = Counter[str](entry.category for entry in history.incidents if entry.run_name not in history.runs)
    if any(category in FAULTS for category in outside):
        yield _note("faults", f"Outside any run: {', '.join(_counted_faults(outside))}.")
    if outside["interrupted"]:
        yield _note("interrupted", f"The experiment was stopped by a signal {times(outside['interrupted'])}.")
    if pauses := history.pauses:
        lack = f"The disk was full {times(len(pauses))}"
        yield _note("disk", f"{lack}, and nothing was lost: {'; '.join(pauses)}.")
    unequal = (entry.detail.rstrip(".") for entry in history.incidents if entry.category == "unequal_devices")
    yield from (_note("hardware", f"Devices differed: {detail}.") for detail in unequal)


def _counted_faults(faults: Mapping[str, int]) -> list[str]:
    return [counted(faults[key], name) for key, name in FAULTS.items() if faults.get(key)]


def _throughput(groups: Sequence[Conduct]) -> Iterator[Finding]:
    speeds = {group.group: group.decisions_per_s for group in groups if group.decisions_per_s}
    if len(speeds) < 2 or max(speeds.values()) < UNEQUAL_THROUGHPUT * min(speeds.values()):
        return
    ratio = max(speeds.values()) / min(speeds.values())
    each = ", ".join(
        f"{group.group} {significant(speeds[group.group], 3)} ({significant(group.wall_s, 3)} s)"
        for group in groups if group.group in speeds
    )
    yield _note(
        "throughput",
        f"Groups trained at different speeds; environment steps per second (wall time): {each}; fastest over slowest "
        f"{ratio:.2f}.",
    )


def _cold(group: Conduct) -> Iterator[Finding]:
    first, ratio = group.first_episode_s, group.first_over_rest
    if first is None or ratio is None or ratio < COLD_FIRST_EPISODE or group.warm_up_s == 0.0:
        return  # not slow, or there was no warm-up that could have been too short
    warm = "" if group.warm_up_s is None else f" after a warm-up of {significant(group.warm_up_s, 3)} s"
    yield _note(
        "cold start",
        f"{group.group}: the first episode took {significant(first, 3)} s{warm}, "
        f"{ratio:.2f} times the median of the others.",
        group.group,
    )


def _note(kind: str, sentence: str, *groups: str) -> Finding:
    return Finding(kind, "notes", groups, sentence)


# --- audit ppo -------------------------------------------------------------------------------------------------------
# Audit of the policy updates of each learning group. Pure.
#
# Training pathologies are an outcome of the group's settings, so they are noted and counted. Two cases differ: an
# update that does not see what the policy saw is a fault of the program, and a group that never trained has no
# meaningful outcome.


def update_findings(history: History) -> Iterator[Finding]:
    """Yield findings per learning group; counts are over all recorded updates, including those of unfinished runs."""
    for group, runs in learners(history).items():
        yield from _pathologies(group, runs)
        yield from _dead_heads(group, [run for run in runs if len(run.columns) >= run.spec.episodes])


def _pathologies(group: str, runs: Sequence[RunHistory]) -> Iterator[Finding]:
    updates = [int(sum(run.columns.of("learns"))) for run in runs]
    counts = [Counter(count_pathologies(run.columns)) for run in runs]
    total: Counter[str] = sum(counts, Counter())
    if not runs[0].spec.settings.learns:
        del total[VALUE_COLLAPSE]  # the group does not learn, so an untrained critic is expected
    for kind in sorted(total):
        affected = sum(count[kind] > 0 for count in counts)
        where = f"{total[kind]} of {sum(updates)} updates, {affected} of {len(runs)} runs"
        if kind == RATIO_MISMATCH:
            worst = max(error for run in runs for error in run.columns.known("first_ratio_error"))
            sentence = (
                f"{group}: before the first step the probability ratio differed from 1 by up to {worst:.1e} ({where}), "
                "so the update did not reproduce the policy's probabilities."
            )
            yield Finding(kind, "blocks", (group,), sentence)
        elif all(2 * count[kind] > n for count, n in zip(counts, updates, strict=True)):
            sentence = f"{group}: {kind} in more than half of the updates of every run ({where}): it did not train."
            yield Finding(kind, "caps", (group,), sentence)
        else:
            yield Finding(kind, "notes", (group,), f"{group}: {kind} in {where}.")


def _dead_heads(group: str, runs: Sequence[RunHistory]) -> Iterator[Finding]:
    """Report heads that had no choice in any update of a whole run, although the settings allow a choice."""
    dead = Counter(head for run in runs for head in _dead(run))
    if not dead:
        return
    heads = ", ".join(f"{head} ({count} of {len(runs)} runs)" for head, count in sorted(dead.items()))
    caps = dead[runs[0].columns.heads[0]] == len(runs)  # the first head is used in every decision
    end = ": it did not train" if caps else ""
    yield Finding(
        "dead heads", "caps" if caps else "notes", (group,),
        f"{group}: action heads that never had a choice in any update of a run: {heads}{end}.",
    )


def _dead(run: RunHistory) -> list[str]:
    columns = run.columns
    single = {"slot": len(run.spec.slots) == 1, "blueprint": len(run.spec.settings.growth.blueprints) == 1}
    return [
        head
        for head in columns.heads
        if not single.get(head) and all(share == 0.0 for share in columns.head(head)[1] if share == share)
    ]
