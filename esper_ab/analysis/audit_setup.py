"""Audit of the conditions: same code and same orders for all runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from esper_ab.analysis.trained_by import CodeState, code_states, recorded_by, sittings_at_work, telling
from esper_ab.contracts.messages import RunSpec
from esper_ab.journal.fold import History
from esper_ab.verdict.finding import Finding, Weight

# Orders that must be equal for all runs.
_COMMON = (
    "experiment_digest", "rng_seed", "task", "outcome", "repeats", "data_dir", "slots", "n_envs", "episodes", "steps",
    "eval_episodes", "arithmetic",
)  # fmt: skip


def findings(history: History) -> Iterator[Finding]:
    """Check code, versions and machine, which may differ between the sittings of a continued experiment.

    A sitting that recorded no result is ignored.
    """
    sittings = sittings_at_work(history)
    yield from _code(code_states(history), [sitting.code for sitting in sittings])
    yield from _unlike(
        "versions", "blocks", "The runs were done with different versions", [sitting.versions for sitting in sittings]
    )
    yield from _torch(history)
    yield from _orders([run.spec for run in history.runs.values()], history.plan.digest)
    continued = "The experiment was continued on another machine"
    yield from _unlike("machine", "notes", continued, [sitting.machine for sitting in sittings])
    if history.plan.carries:
        sentence = (
            "The environments carry state from one reset to the next: the same seed and actions gave something else "
            "in the preflight after an episode than in new environments. An evaluation begins in new ones, without "
            "that state, and so does a run that was taken up after a death, which is another than without it."
        )
        yield _whole("environments", "notes", sentence)
    elif any(not run.spec.repeats for run in history.runs.values()):
        sentence = (
            "The environments do not repeat: the same seed and actions gave something else in the preflight. Pairing "
            "then shares seeds and not what happens, equal settings do not give equal records, and a run that was "
            "taken up after a death is another than without it."
        )
        yield _whole("environments", "notes", sentence)
    if history.plan.experiment.unpaired:
        sentence = "The groups of a seed do not share randomness (unpaired): differences vary more than they need."
        yield _whole("unpaired", "notes", sentence)
    if history.plan.experiment.share_observation_norm:
        yield from _coupled(history)


def _whole(kind: str, weight: Weight, sentence: str) -> Finding:
    """Make a finding about the whole experiment."""
    return Finding(kind, weight, (), sentence)


def _coupled(history: History) -> Iterator[Finding]:
    """Note groups that share a normaliser, and whether the set of sharing groups changed."""
    sentence = (
        "The learning groups share the moments that normalise their observations, so they are coupled: each result "
        "holds in the company of the other groups, and another group would change it."
    )
    yield _whole("coupled", "notes", sentence)
    companies: dict[frozenset[str], int] = {}
    for block in history.blocks:
        runs = [history.runs[spec.ref.name] for spec in block.runs]
        if any(run.evaluation is not None for run in runs):
            company = frozenset(run.ref.group_id for run in runs if run.observations is not None)
            companies[company] = companies.get(company, 0) + 1
    if len(companies) > 1:
        each = [f"{', '.join(sorted(company))} in {count}" for company, count in companies.items()]
        yield _whole("company", "notes", f"Not every seed had the same learners that share: {'; '.join(each)}.")


def _code(states: Sequence[CodeState], found: Sequence[Mapping[str, str]]) -> Iterator[Finding]:
    if len(states) > 1:
        key = telling([state.code for state in states])
        each = [f"{key} {state.code.get(key, '')[:16] or 'unknown'} in {_counted(state.runs)}" for state in states]
        yield _whole("code", "blocks", f"The runs were done by {len(states)} states of the code: {'; '.join(each)}.")
    dirty = sum(code.get("dirty") == "yes" for code in found)
    if dirty:
        where = "" if len(found) == 1 else f" in {dirty} of {len(found)} sittings"
        yield _whole("dirty checkout", "notes", f"The checkout had changes that no commit holds{where}.")


def _counted(runs: Sequence[str]) -> str:
    """Return "shaped/4", or "10 runs, shaped/0 first"."""
    return runs[0] if len(runs) == 1 else f"{len(runs)} runs, {runs[0]} first"


def _unlike(kind: str, weight: Weight, words: str, found: Sequence[Mapping[str, str]]) -> Iterator[Finding]:
    """Report the keys that have several values, or are missing somewhere."""
    said = []
    for key in sorted({key for mapping in found for key in mapping}):
        values = list(dict.fromkeys(mapping.get(key, "none") for mapping in found))
        if len(values) > 1:
            said.append(f"{key} {', '.join(values)}")
    if said:
        yield _whole(kind, weight, f"{words}: {'; '.join(said)}.")


def _torch(history: History) -> Iterator[Finding]:
    lanes: dict[str, set[str]] = {}
    for worker in (taken.worker for run in history.runs.values() for taken in recorded_by(run)):
        if worker is not None:
            lanes.setdefault(worker.torch_version, set()).add(worker.device)
    if len(lanes) > 1:
        each = [f"{version or 'none'} on {', '.join(sorted(names))}" for version, names in sorted(lanes.items())]
        yield _whole("torch", "blocks", f"Workers had different versions of torch: {'; '.join(each)}.")


def _orders(specs: Sequence[RunSpec], digest: str) -> Iterator[Finding]:
    differing = [key for key in _COMMON if len({repr(getattr(spec, key)) for spec in specs}) > 1]
    foreign = [spec.ref.name for spec in specs if spec.experiment_digest != digest]
    if differing:
        yield _whole("orders", "blocks", f"Runs had different orders in what must be common: {', '.join(differing)}.")
    elif foreign:
        yield _whole("orders", "blocks", f"{len(foreign)} runs were not ordered by this plan, {foreign[0]} first.")
