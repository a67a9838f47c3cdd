"""Audit of the conditions: same code and same orders for all runs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from esper_ab.analysis.audit_findings import note_on
from esper_ab.analysis.code_states import CodeState, code_states, recorded_by, sittings_at_work, telling
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.journal.fold import History
from esper_ab.verdict.finding import Finding, Weight

# Fields of RunSpec that must be equal for all runs.
_COMMON = (
    "experiment_digest",
    "rng_seed",
    "task",
    "outcome",
    "repeats",
    "data_dir",
    "slots",
    "n_envs",
    "episodes",
    "steps",
    "eval_episodes",
    "arithmetic",
)


def setup_findings(history: History) -> Iterator[Finding]:
    """Check code, versions and machine, which may differ between the sittings of a continued experiment.

    A sitting that recorded no result is ignored.
    """
    sittings = sittings_at_work(history)
    versions = [sitting.versions for sitting in sittings]
    machines = [sitting.machine for sitting in sittings]
    specs = [run.spec for run in history.runs.values()]
    yield from _code(code_states(history), [sitting.code for sitting in sittings])
    yield from _unlike("versions", "blocks", "The runs used different versions", versions)
    yield from _torch(history)
    yield from _orders(specs, history.plan.digest)
    yield from _unlike("machine", "notes", "The experiment was continued on another machine", machines)
    if history.plan.carries:
        yield note_on(
            "environments",
            "The environments carry state from one reset to the next: in the preflight the same seed and actions gave "
            "different results after an episode than in new environments. An evaluation starts in new environments, "
            "without that state, and so does a run that is resumed after a death; its results then differ.",
        )
    elif not all(spec.repeats for spec in specs):
        yield note_on(
            "environments",
            "The environments are not repeatable: in the preflight the same seed and actions gave different results. "
            "So pairs share seeds but not events, equal settings do not give equal records, and a run that is resumed "
            "after a death gives other results than an undisturbed one.",
        )
    if history.plan.experiment.unpaired:
        yield note_on(
            "unpaired", "The groups of a seed share no randomness (unpaired), so differences vary more than necessary."
        )


def _code(states: Sequence[CodeState], codes: Sequence[Mapping[str, str]]) -> Iterator[Finding]:
    if len(states) > 1:
        key = telling([state.code for state in states])
        value_words = []
        for state in states:
            value = state.code.get(key, "")[:16] or "unknown"
            value_words.append(f"{key} {value} in {_counted(state.runs)}")
        yield Finding(
            "code", "blocks", (), f"The runs used {len(states)} states of the code: {'; '.join(value_words)}."
        )
    dirty_count = sum(code.get("dirty") == "yes" for code in codes)
    if dirty_count:
        place_words = ""
        if len(codes) > 1:
            place_words = f" in {dirty_count} of {len(codes)} sittings"
        yield note_on("dirty checkout", f"The checkout had uncommitted changes{place_words}.")


def _counted(runs: Sequence[str]) -> str:
    """Return "shaped/4", or "10 runs, shaped/0 first"."""
    if len(runs) == 1:
        return runs[0]
    return f"{len(runs)} runs, {runs[0]} first"


def _unlike(kind: str, weight: Weight, words: str, mappings: Sequence[Mapping[str, str]]) -> Iterator[Finding]:
    """Report the keys that have several values, or are missing somewhere."""
    keys: set[str] = set()
    for mapping in mappings:
        keys.update(mapping)
    differing_words = []
    for key in sorted(keys):
        values = dict.fromkeys(mapping.get(key, "none") for mapping in mappings)
        if len(values) > 1:
            differing_words.append(f"{key} {', '.join(values)}")
    if differing_words:
        yield Finding(kind, weight, (), f"{words}: {'; '.join(differing_words)}.")


def _torch(history: History) -> Iterator[Finding]:
    lanes: defaultdict[str, set[str]] = defaultdict(set)
    for run in history.runs.values():
        for start in recorded_by(run):
            if start.worker is not None:
                lanes[start.worker.torch_version].add(start.worker.device)
    if len(lanes) > 1:
        version_words = [
            f"{version or 'none'} on {', '.join(sorted(names))}" for version, names in sorted(lanes.items())
        ]
        yield Finding("torch", "blocks", (), f"Workers used different versions of torch: {'; '.join(version_words)}.")


def _orders(specs: Sequence[RunSpec], digest: str) -> Iterator[Finding]:
    differing_keys = [key for key in _COMMON if _varies(specs, key)]
    foreign_runs = [spec.ref.name for spec in specs if spec.experiment_digest != digest]
    if differing_keys:
        yield Finding(
            "orders", "blocks", (), f"Runs had different values of common settings: {', '.join(differing_keys)}."
        )
    elif foreign_runs:
        yield Finding(
            "orders", "blocks", (), f"{len(foreign_runs)} runs do not come from this plan, {foreign_runs[0]} first."
        )


def _varies(specs: Sequence[RunSpec], key: str) -> bool:
    values = {repr(getattr(spec, key)) for spec in specs}
    return len(values) > 1
